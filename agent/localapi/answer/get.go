package answer

import (
	"bytes"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"rekindle.edge/agent/localapi/collection"
)

// get answers with one object. One that the node knows to be absent is not found.
func (q *query) get(w http.ResponseWriter, r *http.Request) error {
	if q.options.version > 0 {
		if err := q.reach(r.Context(), q.options.version); err != nil {
			return err
		}
	}
	item := q.collection.Get(collection.Key{Namespace: q.info.Namespace, Name: q.info.Name})
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
