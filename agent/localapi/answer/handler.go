package answer

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"

	"rekindle.edge/agent/localapi/collection"
	"rekindle.edge/agent/localapi/overlay"
	"rekindle.edge/agent/snapshot"
)

// Objects is what the handler needs of the snapshot.
type Objects interface {
	// Known says whether a scope, or a wider one, is held: what is not in it is absent.
	Known(snapshot.Scope) bool
	// Get is one object, false if it is not held.
	Get(resource schema.GroupVersionResource, namespace, name string) (snapshot.Object, bool)
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
	// Process says whether the node's connection is kubelet's; nil: that cannot be told.
	Process func() bool
	// Token is the bearer's, if it is not the node.
	Token string
}

// kubelet says whether a caller is kubelet, and not somebody else who holds the node's key. A
// kubelet that runs under another name, as a part of something larger, is known by its process.
func (c Caller) kubelet(r *http.Request) bool {
	return c.Node && (strings.HasPrefix(r.UserAgent(), "kubelet/") || c.Process != nil && c.Process())
}

// Access decides whether a caller may have an answer of the node's own.
type Access interface {
	// Check returns a *apierrors.StatusError that refuses, or nil.
	Check(ctx context.Context, caller Caller, info *request.RequestInfo) error
	// Identify refuses a caller that is nobody.
	Identify(ctx context.Context, caller Caller) error
	// ReviewToken and ReviewAccess answer reviews of callers of kubelet's own port.
	ReviewToken(ctx context.Context, review *authenticationv1.TokenReview) error
	ReviewAccess(ctx context.Context, review *authorizationv1.SubjectAccessReview) error
}

// Replay answers a request for a token with the one that is kept for it.
type Replay func(pod types.UID, namespace, account string, audiences []string, seconds int64, now time.Time) (authenticationv1.TokenRequestStatus, error)

// Handler answers requests from what the node holds.
type Handler struct {
	Log      logr.Logger
	Node     func() string
	Objects  Objects
	Upstream Upstream
	Access   Access
	// Missed is told of reads that could be answered neither way.
	Missed func(resource schema.GroupResource, client string)
	// Metrics counts requests; nil: nobody does. Exposition answers /metrics; nil: the API
	// server does.
	Metrics    *Metrics
	Exposition http.Handler
	// FreshnessWait is how long the first lists of a boot wait for the mirror.
	FreshnessWait func() time.Duration
	// Uplink is since when the node has had a way to the API server, false while it has
	// none; unset: since the start.
	Uplink func() (time.Time, bool)
	// Overlay keeps what is written while the API server is out of reach.
	Overlay *overlay.Overlay
	// Memory keeps what the API server offers; nil: that is not kept.
	Memory Memory
	// Replay is nil while there are no tokens.
	Replay Replay
	// Edit is what is changed in the copies of a collection that kubelet is served, listed
	// anew or otherwise; nil: nothing.
	Edit func(resource schema.GroupVersionResource, list bool) func(*collection.Item) []byte
	// Listed is told when kubelet was given its own collection from the start; unset: nobody
	// asks.
	Listed func(schema.GroupVersionResource)
	// Held says why an object is not given to anybody; empty, or no function: it is.
	Held func(schema.GroupVersionResource, *collection.Item) string
	// ListRefused is told when kubelet is refused its list of pods; unset: nobody asks.
	ListRefused func()
	// ReadUpstream is told of every object that the mirror only reads now and then when the API
	// server has answered the node's own read of it; raw is nil if there is none. Unset: nobody
	// asks.
	ReadUpstream func(scope snapshot.Scope, raw []byte)
	// StatusWritten is told of every status that kubelet wrote, and the object with it; the
	// object is nil if the write went to the API server.
	StatusWritten func(info *request.RequestInfo, object []byte)
	// Written is told of every object that was written at the API server from here, by name, or
	// without one if it was made; unset: nobody asks.
	Written func(snapshot.Scope)
	// EventWritten is told of every event that kubelet makes, of the core group; unset: nobody
	// asks.
	EventWritten func(*corev1.Event)

	collections *collection.Set
	doubt       *doubt
	started     time.Time
	leases      leases
	barriers    barriers
}

// New completes a handler. Stop ends it.
func New(h *Handler, clock clock.PassiveClock) (stop func()) {
	h.doubt = &doubt{clock: clock}
	h.started = clock.Now()
	h.collections = collection.NewSet(func(resource schema.GroupVersionResource) ([]*collection.Item, uint64) {
		objects, version := h.Objects.List(resource)
		items := make([]*collection.Item, len(objects))
		for i := range objects {
			items[i] = itemOf(objects[i])
		}
		return items, version
	}, h.replace)
	return h.Objects.Subscribe(h.take)
}

func itemOf(o snapshot.Object) *collection.Item {
	return &collection.Item{Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, Raw: o.Raw}
}

func scopeOf(info *request.RequestInfo) snapshot.Scope {
	return snapshot.Scope{Resource: resourceOf(info), Namespace: info.Namespace, Name: info.Name}
}

// take takes over a change of the snapshot.
func (h *Handler) take(event snapshot.Event) {
	switch event.Type {
	case snapshot.Added, snapshot.Modified:
		h.collections.Apply(event.Resource, false, itemOf(event.Object), event.Version)
	case snapshot.Deleted, snapshot.Forgotten:
		h.collections.Apply(event.Resource, true, itemOf(event.Object), event.Version)
	case snapshot.Overlaid:
		if object, ok := h.Objects.Get(event.Resource, event.Object.Namespace, event.Object.Name); ok {
			h.collections.Apply(event.Resource, false, itemOf(object), event.Version)
			h.renewSlices(object, event.Object.Raw != nil)
		}
	case snapshot.Reset:
		// Not from here: reading the snapshot again would wait for who tells this.
		go h.collections.Break(event.Resource)
	}
}

// Serve answers a request if the node can and should. False: it is to be passed on, and
// nothing was written.
func (h *Handler) Serve(w http.ResponseWriter, r *http.Request, info *request.RequestInfo, caller Caller) bool {
	served := h.serve(w, r, info, caller)
	if !served && info.IsResourceRequest {
		h.passed(info)
	}
	return served
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request, info *request.RequestInfo, caller Caller) bool {
	if r.Header.Get("Upgrade") != "" {
		return false
	}
	if !info.IsResourceRequest {
		return h.metrics(w, r, info, caller) || h.discovery(w, r, info, caller)
	}
	if take := h.writerOf(info); take != nil && caller.Node {
		return h.write(w, r, info, take)
	}
	if info.Subresource != "" || never(info) {
		return false
	}
	switch info.Verb {
	case "get", "list", "watch":
		return h.read(w, r, info, caller)
	case "create", "update", "patch", "delete":
		if reach, _ := h.Upstream.Reach(); reach != CutOff {
			h.count(info, sourceUpstream)
			h.Upstream.Pass(h.overhear(w, info), r)
			return true
		}
	}
	return false
}

// never says which resources are always the API server's to answer: an old lease would
// make two leaders, and events are not kept.
func never(info *request.RequestInfo) bool {
	return info.Resource == "leases" || info.Resource == "events"
}
