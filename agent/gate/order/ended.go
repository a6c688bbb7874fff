package order

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// ended are the events by which kubelet says that it ends a pod itself. The pod's status
// says so only after its call for a sandbox has been answered.
var ended = map[string]string{
	"Evicted":    "kubelet has evicted the pod",
	"Preempting": "kubelet has given the pod's place to a critical one",
}

// Event takes what kubelet makes known. Pods that it has ended, and all when it ends them
// because the node shuts down, are let go.
func (h *Holder) Event(e *corev1.Event) {
	why, known := ended[e.Reason]
	switch {
	case e.InvolvedObject.Kind == "Pod" && known:
		h.Ended(string(e.InvolvedObject.UID), why)
	case e.InvolvedObject.Kind == "Node" && e.Reason == "Shutdown" && !strings.Contains(e.Message, "cancellation"):
		h.ShuttingDown()
	}
}
