package answer

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"

	"rekindle.edge/agent/localapi/collection"
	"rekindle.edge/agent/snapshot"
)

// Served is a collection as it is served, but for what is changed for kubelet alone.
func (h *Handler) Served(resource schema.GroupVersionResource) *collection.Collection {
	return h.collections.Of(resource)
}

// PodsServed says whether the node's list of pods is one that kubelet is served.
func (h *Handler) PodsServed() bool {
	trusted, _ := h.Objects.Trusted()
	return trusted && h.Objects.Known(snapshot.Scope{Resource: snapshot.Pods})
}

// noteEvent tells of an event that kubelet makes.
func (h *Handler) noteEvent(info *request.RequestInfo, body []byte) {
	if h.EventWritten == nil || info.Resource != "events" || info.APIGroup != "" || info.Verb != "create" {
		return
	}
	var event corev1.Event
	if decodeBody(body, &event) == nil {
		h.EventWritten(&event)
	}
}
