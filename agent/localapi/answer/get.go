package answer

import (
	"bytes"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rekindle.edge/agent/localapi/collection"
)

// csiNodes are asked for by kubelet until it knows; one that is absent it makes, and if it
// cannot, it exits.
var csiNodes = schema.GroupResource{Group: "storage.k8s.io", Resource: "csinodes"}

// get answers with one object. One that the node knows to be absent is not found.
func (q *query) get(w http.ResponseWriter, r *http.Request, held func(schema.GroupVersionResource, *collection.Item) string) error {
	if q.options.version > 0 {
		if err := q.reach(r.Context(), q.options.version); err != nil {
			return err
		}
	}
	item := q.collection.Get(collection.Key{Namespace: q.info.Namespace, Name: q.info.Name})
	if item == nil && q.resource.GroupResource() == csiNodes {
		return notHeld("csinodes.storage.k8s.io " + q.info.Name)
	}
	if item != nil && held != nil {
		if why := held(q.resource, item); why != "" {
			return apierrors.NewServiceUnavailable("rekindle-agent: " + why)
		}
	}
	if item == nil {
		return apierrors.NewNotFound(q.resource.GroupResource(), q.info.Name)
	}
	var body bytes.Buffer
	if err := q.encoder.object(&body, item, true); err != nil {
		return err
	}
	body.WriteByte('\n')
	respond(w, r, http.StatusOK, body.Bytes())
	return nil
}
