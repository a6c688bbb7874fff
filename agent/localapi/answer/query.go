package answer

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"rekindle.edge/agent/localapi/collection"
)

// query is one read of a collection that the node holds.
type query struct {
	resource   schema.GroupVersionResource
	info       *request.RequestInfo
	collection *collection.Collection
	options    options
	selection  selection
	encoder    *encoder
	// given is called when all objects have been given; unset: nobody asks.
	given func()
}

func (q *query) tell() {
	if q.given != nil {
		q.given()
	}
}

func resourceOf(info *request.RequestInfo) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource}
}

// newQuery checks a request. Kind is what objects of the resource say of themselves.
func newQuery(r *http.Request, info *request.RequestInfo, of *collection.Collection) (*query, error) {
	q := &query{resource: resourceOf(info), info: info, collection: of}
	form, ok := negotiate(r.Header.Get("Accept"))
	if !ok {
		return nil, notAcceptable()
	}
	values := r.URL.Query()
	kind := typeOf(q.resource, q.sample())
	var err error
	if q.options, err = parseOptions(values, info.Verb == "watch"); err != nil {
		return nil, err
	}
	if q.selection, err = newSelection(q.resource.GroupResource(), info.Namespace, q.options); err != nil {
		return nil, err
	}
	include := metav1.IncludeObjectPolicy(values.Get("includeObject"))
	switch include {
	case "", metav1.IncludeNone, metav1.IncludeMetadata, metav1.IncludeObject:
	default:
		return nil, apierrors.NewBadRequest("includeObject must be None, Metadata or Object")
	}
	q.encoder = &encoder{form: form, kind: kind, include: include}
	return q, nil
}

// fromStart says whether all objects are read, and not what changed since.
func (q *query) fromStart() bool {
	initial := q.options.SendInitialEvents
	return q.info.Verb == "list" || q.options.version == 0 || initial != nil && *initial
}

// sample is the type of any object of the collection.
func (q *query) sample() metav1.TypeMeta {
	items, _ := q.collection.List()
	for _, item := range items {
		return item.Kind()
	}
	return metav1.TypeMeta{}
}
