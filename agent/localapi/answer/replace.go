package answer

import (
	"bytes"
	"encoding/json"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"rekindle.edge/agent/localapi/collection"
	"rekindle.edge/agent/localapi/overlay"
	"rekindle.edge/agent/snapshot"
)

var endpointSlices = schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}

// replace gives what is served in place of an object of the snapshot, at a version of its
// collection: itself, or with what was written on the node.
func (h *Handler) replace(resource schema.GroupVersionResource, item *collection.Item, version uint64) *collection.Item {
	if h.Overlay == nil {
		return item
	}
	served := strconv.FormatUint(version, 10)
	var raw []byte
	switch resource {
	case snapshot.Pods, snapshot.Nodes:
		entry, ok := h.entry(resource, item.Namespace, item.Name, item.UID)
		if !ok {
			return item
		}
		var err error
		if raw, err = overlay.With(item.Raw, entry.Status, served); err != nil {
			h.Log.Error(err, "Status that was written on the node is not served", "namespace", item.Namespace, "name", item.Name)
			return item
		}
	case endpointSlices:
		raw = overlay.Slice(item.Raw, func(namespace, name string, uid types.UID) (json.RawMessage, bool) {
			entry, ok := h.entry(snapshot.Pods, namespace, name, uid)
			return entry.Status, ok
		})
		if bytes.Equal(raw, item.Raw) {
			return item
		}
		var err error
		if raw, err = overlay.WithVersion(raw, served); err != nil {
			return item
		}
	default:
		return item
	}
	return &collection.Item{Namespace: item.Namespace, Name: item.Name, UID: item.UID, ResourceVersion: served, Raw: raw}
}

func (h *Handler) entry(resource schema.GroupVersionResource, namespace, name string, uid types.UID) (overlay.Entry, bool) {
	return h.Overlay.Of(snapshot.OverlayKey{Resource: resource, Namespace: namespace, Name: name}, uid)
}

// renewSlices serves the endpoints of a pod by what kubelet wrote of it. Once that is handed
// over, they stay until the slices come anew from upstream, where somebody has to see it
// first.
func (h *Handler) renewSlices(pod snapshot.Object, written bool) {
	if !written || pod.UID == "" {
		return
	}
	slices, _ := h.Objects.List(endpointSlices)
	for _, slice := range slices {
		if slice.Namespace == pod.Namespace && bytes.Contains(slice.Raw, []byte(pod.UID)) {
			h.collections.Renew(endpointSlices, itemOf(slice))
		}
	}
}
