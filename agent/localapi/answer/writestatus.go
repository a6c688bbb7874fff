package answer

import (
	"bytes"
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"

	"rekindle.edge/agent/localapi/collection"
	"rekindle.edge/agent/localapi/overlay"
	"rekindle.edge/agent/snapshot"
)

func keyOf(info *request.RequestInfo) snapshot.OverlayKey {
	return snapshot.OverlayKey{Resource: resourceOf(info), Namespace: info.Namespace, Name: info.Name}
}

// served is the object that kubelet's next change is a change of.
func (h *Handler) served(info *request.RequestInfo) (item *collection.Item, raw []byte) {
	resource := resourceOf(info)
	item = h.collections.Of(resource).Get(collection.Key{Namespace: info.Namespace, Name: info.Name})
	if item == nil {
		return nil, nil
	}
	// The node comes from its watch, pods from a get.
	if h.Edit != nil && resource == snapshot.Nodes {
		if edit := h.Edit(resource, false); edit != nil {
			return item, edit(item)
		}
	}
	return item, item.Raw
}

// rebased says whether kubelet was served something else than what is upstream.
func (h *Handler) rebased(info *request.RequestInfo) bool {
	item, raw := h.served(info)
	if item == nil {
		return false
	}
	if _, ok := h.Overlay.Of(keyOf(info), item.UID); ok {
		return true
	}
	return !bytes.Equal(item.Raw, raw)
}

// writeStatus keeps a status. It reaches the API server when that can be reached.
func (h *Handler) writeStatus(w http.ResponseWriter, r *http.Request, info *request.RequestInfo, patch []byte) bool {
	item, base := h.served(info)
	if item == nil {
		if h.Objects.Known(scopeOf(info)) {
			fail(w, r, apierrors.NewNotFound(resourceOf(info).GroupResource(), info.Name))
			return true
		}
		return false
	}
	contentType := r.Header.Get("Content-Type")
	if strings.HasPrefix(contentType, string(types.ApplyYAMLPatchType)) || strings.HasPrefix(contentType, string(types.ApplyCBORPatchType)) {
		return false // who owns which field is the API server's to say
	}
	object, err := overlay.Patch(info.Resource, contentType, base, patch)
	if errors.Is(err, overlay.ErrPatchType) {
		fail(w, r, unsupportedMediaType(err))
		return true
	}
	if err != nil {
		fail(w, r, apierrors.NewBadRequest("rekindle-agent: "+err.Error()))
		return true
	}
	if entry, err := overlay.EntryOf(object, ""); err != nil || entry.UID != item.UID {
		fail(w, r, apierrors.NewConflict(resourceOf(info).GroupResource(), info.Name, errPrecondition))
		return true
	}
	written, err := h.Overlay.Write(keyOf(info), object)
	if err != nil {
		fail(w, r, apierrors.NewServiceUnavailable("rekindle-agent: "+err.Error()))
		return true
	}
	if h.StatusWritten != nil {
		h.StatusWritten(info, written)
	}
	respond(w, r, http.StatusOK, written)
	return true
}
