package sow

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestTypesLose: what goes through the types of today's API loses the fields of tomorrow's,
// and Lost says so.
func TestTypesLose(t *testing.T) {
	before := Sow(t, `{"metadata":{"name":"p","labels":{"a":"b"}},"spec":{"containers":[{"name":"c"}]}}`, "labels")
	var pod corev1.Pod
	if err := json.Unmarshal(before, &pod); err != nil {
		t.Fatal(err)
	}
	after, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"", ".metadata", ".spec", ".spec.containers[0]"}, Lost(t, before, after)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"", ".metadata"}, Lost(t, before, after, ".spec")); diff != "" {
		t.Error(diff)
	}
	if lost := Lost(t, before, before); lost != nil {
		t.Errorf("lost %v although nothing was done", lost)
	}
}
