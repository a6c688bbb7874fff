package answer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

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

func TestMissedOutlivesTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "run", "missed.json")
		ingresses := schema.GroupResource{Group: "networking.k8s.io", Resource: "ingresses"}
		run := func() (*Missed, func()) {
			m := &Missed{}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				m.Keep(ctx, path)
			}()
			synctest.Wait()
			return m, func() { cancel(); <-done }
		}
		first, _ := run()
		first.Add(ingresses, "traefik")
		time.Sleep(missedEvery)
		synctest.Wait()

		// The first one is killed; what it wrote is there.
		second, stop := run()
		second.Add(ingresses, "traefik")
		stop()

		third, stop := run()
		want := []v1alpha1.MissedResource{{Group: "networking.k8s.io", Resource: "ingresses", Client: "traefik", Count: 2}}
		if diff := cmp.Diff(want, third.Most()); diff != "" {
			t.Error(diff)
		}
		stop()
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}

		// A file that cannot be read is told, and counting goes on.
		if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		fourth, stop := run()
		fourth.Add(ingresses, "kubectl")
		stop()
		fifth, stop := run()
		defer stop()
		if got := fifth.Most(); len(got) != 1 || got[0].Client != "kubectl" {
			t.Errorf("got %v", got)
		}
	})
}

func TestWhatIsCountedIsFitForTheStatus(t *testing.T) {
	m := &Missed{}
	m.Add(schema.GroupResource{Group: strings.Repeat("g", 300), Resource: "th\xffings"}, strings.Repeat("x", 63)+"\u00e9")
	for i := range 10 * missedKept {
		m.Add(schema.GroupResource{Resource: fmt.Sprint("made-up-", i)}, "x")
	}
	if len(m.counts) > missedKept {
		t.Errorf("%d are counted apart, want at most %d", len(m.counts), missedKept)
	}
	for _, resource := range m.Most() {
		for _, text := range []string{resource.Group, resource.Resource, resource.Client} {
			if !utf8.ValidString(text) {
				t.Errorf("%q is no text: the API server would give back another, and it would be written for ever", text)
			}
		}
		if len(resource.Group) > 253 || len(resource.Resource) > 63 || len(resource.Client) > 64 {
			t.Errorf("too long: %+v", resource)
		}
	}
}
