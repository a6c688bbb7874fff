package answer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rekindle.edge/api/v1alpha1"
)

func TestMissed(t *testing.T) {
	var m Missed
	ingresses := schema.GroupResource{Group: "networking.k8s.io", Resource: "ingresses"}
	for range 3 {
		m.Add(ingresses, "traefik")
	}
	m.Add(ingresses, "kubectl")
	m.Add(schema.GroupResource{Resource: "endpoints"}, strings.Repeat("x", 100))
	want := []v1alpha1.MissedResource{
		{Group: "networking.k8s.io", Resource: "ingresses", Client: "traefik", Count: 3},
		{Resource: "endpoints", Client: strings.Repeat("x", 64), Count: 1},
		{Group: "networking.k8s.io", Resource: "ingresses", Client: "kubectl", Count: 1},
	}
	if diff := cmp.Diff(want, m.Most()); diff != "" {
		t.Error(diff)
	}
	for i := range 10 * missedKept {
		m.Add(schema.GroupResource{Resource: fmt.Sprint("r", i)}, "")
	}
	if len(m.Most()) != missedShown || len(m.counts) != missedKept {
		t.Errorf("%d shown, %d counted", len(m.Most()), len(m.counts))
	}
}
