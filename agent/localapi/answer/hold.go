package answer

import (
	"net/http"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"

	"rekindle.edge/agent/localapi/collection"
)

const (
	holdEvery = 100 * time.Millisecond
	// linkedHold is how long an object is held while the API server answers. It is longer
	// than a list that is asked for twice takes; after that the API server decides, as it
	// does where there is no mirror.
	linkedHold = 15 * time.Second
)

// hold keeps kubelet waiting for an object that is held, until it is not, or kubelet gives
// up. A refusal would make kubelet wait twice as long before each further question, up to
// two minutes: the volume would come that much after the link.
func (h *Handler) hold(r *http.Request, info *request.RequestInfo, caller Caller) {
	if h.Held == nil || info.Verb != "get" {
		return
	}
	resource, key := resourceOf(info), collection.Key{Namespace: info.Namespace, Name: info.Name}
	held := func() bool {
		item := h.collections.Of(resource).Get(key)
		return item != nil && h.Held(resource, item) != ""
	}
	if !held() || !caller.kubelet(r) {
		return
	}
	ticker := time.NewTicker(holdEvery)
	defer ticker.Stop()
	for linked := time.Duration(0); linked < linkedHold && held(); {
		select {
		case <-r.Context().Done():
			return
		case <-ticker.C:
		}
		if reach, _ := h.Upstream.Reach(); reach == Linked {
			linked += holdEvery
		}
	}
}
