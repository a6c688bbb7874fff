package daemon

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"rekindle.edge/agent/snapshot"
	"rekindle.edge/agent/timeline"
	"rekindle.edge/api/v1alpha1"
)

// TestWhatTheLocalAPISeesIsMeasured: a cut off boot of a kubelet that has no socket for its
// pods: the record is made of what kubelet reads and writes.
func TestWhatTheLocalAPISeesIsMeasured(t *testing.T) {
	l := beginLoop(t, newStore(t), "two")
	open := timeline.Begin("two", v1alpha1.PreviousEndPowerLoss, time.Time{}, 30, map[string]timeline.LastSeen{
		"uid-web":                {Name: "default/web", Ready: true},
		"static/kube-system/dns": {Name: "kube-system/dns", Ready: true},
	})
	l.tracker = timeline.NewTracker(open)
	w := Witness{loop: l}
	w.Listed(schema.GroupVersionResource{Version: "v1", Resource: "services"})
	w.Listed(snapshot.Nodes)
	w.Listed(snapshot.Pods)
	l.offer(timeline.ContainerRunning{ID: "new"})
	l.offer(timeline.ContainerRunning{ID: "dns"})
	const ready = `"status":{"conditions":[{"type":"Ready","status":"True"}],"containerStatuses":[{"containerID":"containerd://`
	w.PodWritten([]byte(`{"metadata":{"name":"web","namespace":"default","uid":"uid-web"},` + ready + `new"}]}}`))
	w.PodWritten([]byte(`{"metadata":{"name":"dns","namespace":"kube-system","uid":"other","annotations":{"kubernetes.io/config.mirror":"x"}},` + ready + `dns"}]}}`))
	w.PodWritten([]byte(`not JSON`))
	for len(l.events) > 0 {
		l.observe(<-l.events)
	}
	state := l.tracker.State()
	if state.Edges.NodeServed == nil || state.Edges.PodsServed == nil || *state.Edges.NodeServed > *state.Edges.PodsServed {
		t.Errorf("node %v, pods %v", state.Edges.NodeServed, state.Edges.PodsServed)
	}
	if !l.tracker.Complete() {
		t.Errorf("not complete: %+v", state.Expected)
	}
	// Kubelet does not wait for a loop that is behind.
	for range eventQueue + 1 {
		w.Listed(snapshot.Pods)
	}
}
