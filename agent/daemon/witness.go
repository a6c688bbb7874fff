package daemon

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rekindle.edge/agent/snapshot"
	"rekindle.edge/agent/timeline"
	"rekindle.edge/agent/timeline/source"
)

// Witness tells the record what the local API sees of kubelet. Its methods never wait:
// kubelet does.
type Witness struct{ loop *loop }

// Listed is called when kubelet was given a collection from the start.
func (w Witness) Listed(resource schema.GroupVersionResource) {
	at := w.loop.machine.Clock.Boot()
	switch resource {
	case snapshot.Nodes:
		w.loop.offer(timeline.NodeServed{At: at})
	case snapshot.Pods:
		w.loop.offer(timeline.PodsServed{At: at})
	}
}

// PodWritten is called with a pod when kubelet has written its status, and the API server
// could not be told. While cut off it is the only word of a kubelet that has no socket for
// its pods.
func (w Witness) PodWritten(raw []byte) {
	var pod corev1.Pod
	if json.Unmarshal(raw, &pod) == nil {
		w.loop.offer(source.KubeletSaw(&pod, w.loop.machine.Clock.Boot(), w.loop.wall))
	}
}

// offer hands an event to the loop if that has room for it.
func (l *loop) offer(event timeline.Event) {
	select {
	case l.events <- event:
	default:
		l.log.V(1).Info("Event of the local API is not measured, too many wait")
	}
}
