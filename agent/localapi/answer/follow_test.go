package answer

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"rekindle.edge/agent/snapshot"
)

func TestEventsOfKubeletAreHeardOfWhateverTheLink(t *testing.T) {
	for _, reach := range []Reach{CutOff, Linked} {
		r := newWriteRig(t, reach)
		var heard []types.UID
		r.EventWritten = func(e *corev1.Event) { heard = append(heard, e.InvolvedObject.UID) }
		event := &corev1.Event{Reason: "Evicted", InvolvedObject: corev1.ObjectReference{UID: "uid-web-1"}}
		const path = "/api/v1/namespaces/default/events"
		_, _, _ = r.send(t, "POST", path, "application/vnd.kubernetes.protobuf", proto(t, event, corev1.SchemeGroupVersion.WithKind("Event")))
		_, _, _ = r.send(t, "PATCH", path+"/e", "application/strategic-merge-patch+json", []byte(`{"count":2}`))
		if len(heard) != 1 || heard[0] != "uid-web-1" {
			t.Errorf("heard of %v", heard)
		}
	}
}

func TestWhatIsServedCanBeFollowed(t *testing.T) {
	r := newRig(t, CutOff, held...)
	r.fill()
	if items, _ := r.Served(snapshot.Pods).List(); len(items) == 0 || !r.PodsServed() {
		t.Errorf("%d pods, served: %v", len(items), r.PodsServed())
	}
}
