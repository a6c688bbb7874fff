package answer

import (
	"context"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"

	"rekindle.edge/agent/localapi/collection"
	"rekindle.edge/agent/snapshot"
)

// Objects is what the handler needs of the snapshot.
type Objects interface {
	// Known says whether a scope, or a wider one, is held: what is not in it is absent.
	Known(snapshot.Scope) bool
	// List is a collection's objects and the version of its last change.
	List(schema.GroupVersionResource) ([]snapshot.Object, uint64)
	// Trusted says whether the list of pods may be served, and if not, why.
	Trusted() (bool, string)
	// Subscribe calls f with every change, in order. F must not block.
	Subscribe(f func(snapshot.Event)) (cancel func())
	// InStep is when a collection was last known to be as it is upstream.
	InStep(schema.GroupVersionResource) (time.Time, bool)
}

// Caller is who asks.
type Caller struct {
	// Node: it is the node itself.
	Node bool
	// Token is the bearer's, if it is not the node.
	Token string
}

// Access decides whether a caller may have an answer of the node's own.
type Access interface {
	// Check returns a *apierrors.StatusError that refuses, or nil.
	Check(ctx context.Context, caller Caller, info *request.RequestInfo) error
}

// Handler answers requests from what the node holds.
type Handler struct {
	Log      logr.Logger
	Node     func() string
	Objects  Objects
	Upstream Upstream
	Access   Access
	// Missed is told of reads that could be answered neither way.
	Missed func(resource schema.GroupResource, client string)
	// FreshnessWait is how long the first lists of a boot wait for the mirror.
	FreshnessWait func() time.Duration
	// Edit is what is changed in the copies of a collection that kubelet is served; nil:
	// nothing.
	Edit func(schema.GroupVersionResource) func(*collection.Item) []byte

	collections *collection.Set
	doubt       *doubt
	started     time.Time
}

// New completes a handler. Replace gives what is served in place of an object of the
// snapshot; nil: the object. Stop ends it.
func New(h Handler, clock clock.PassiveClock, replace func(schema.GroupVersionResource, *collection.Item) *collection.Item) (handler *Handler, stop func()) {
	h.doubt = &doubt{clock: clock}
	h.started = clock.Now()
	h.collections = collection.NewSet(func(resource schema.GroupVersionResource) ([]*collection.Item, uint64) {
		objects, version := h.Objects.List(resource)
		items := make([]*collection.Item, len(objects))
		for i := range objects {
			items[i] = itemOf(objects[i])
		}
		return items, version
	}, replace)
	return &h, h.Objects.Subscribe(h.take)
}

func itemOf(o snapshot.Object) *collection.Item {
	return &collection.Item{Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, Raw: o.Raw}
}

// take takes over a change of the snapshot.
func (h *Handler) take(event snapshot.Event) {
	switch event.Type {
	case snapshot.Added, snapshot.Modified:
		h.collections.Apply(event.Resource, false, itemOf(event.Object), event.Version)
	case snapshot.Deleted, snapshot.Forgotten:
		h.collections.Apply(event.Resource, true, itemOf(event.Object), event.Version)
	case snapshot.Reset:
		// Not from here: reading the snapshot again would wait for who tells this.
		go h.collections.Break(event.Resource)
	}
}

// Serve answers a request if the node can and should. False: it is to be passed on, and
// nothing was written.
func (h *Handler) Serve(w http.ResponseWriter, r *http.Request, info *request.RequestInfo, caller Caller) bool {
	if !info.IsResourceRequest || r.Header.Get("Upgrade") != "" || info.Subresource != "" || never(info) {
		return false
	}
	switch info.Verb {
	case "get", "list", "watch":
		return h.read(w, r, info, caller)
	}
	return false
}

// never says which resources are always the API server's to answer: an old lease would
// make two leaders, and events are not kept.
func never(info *request.RequestInfo) bool {
	return info.Resource == "leases" || info.Resource == "events"
}
