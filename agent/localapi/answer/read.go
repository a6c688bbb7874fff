package answer

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"

	"rekindle.edge/agent/localapi/collection"
	"rekindle.edge/agent/localapi/table"
	"rekindle.edge/agent/snapshot"
)

// getOnly are the resources that the mirror reads one by one, now and then: what the node
// holds of them is for when nothing better can be had.
var getOnly = map[schema.GroupResource]bool{
	{Resource: "persistentvolumeclaims"}:                     true,
	{Resource: "persistentvolumes"}:                          true,
	{Resource: "serviceaccounts"}:                            true,
	{Group: "storage.k8s.io", Resource: "volumeattachments"}: true,
	{Group: "storage.k8s.io", Resource: "csinodes"}:          true,
	{Group: "resource.k8s.io", Resource: "resourceclaims"}:   true,
}

// podCertificates are requests of pods for certificates; those of this node's are held.
var podCertificates = schema.GroupResource{Group: "certificates.k8s.io", Resource: "podcertificaterequests"}

// read answers a get, list or watch.
func (h *Handler) read(w http.ResponseWriter, r *http.Request, info *request.RequestInfo, caller Caller) bool {
	resource := resourceOf(info)
	if !h.holds(info, r, caller) {
		return h.unheld(w, r, info, caller)
	}
	h.hold(r, info, caller)
	linked := h.reach() != CutOff
	live := info.Verb == "get" && r.URL.Query().Get("resourceVersion") == "" || getOnly[resource.GroupResource()]
	// Columns of a kind that only the API server knows.
	live = live || linked && h.plainTable(r, resource)
	if live {
		through, asked, answered := h.overhearRead(w, r, info, caller)
		if h.try(through, asked, info) {
			answered()
			h.remember(r, info, caller)
			return true
		}
	}
	return h.answer(w, r, info, caller)
}

// remember asks, once the API server has answered a caller itself, whether the caller may
// have that of the node: cut off, only what was allowed before counts, and a client that
// reads nothing but single objects is never asked about otherwise.
func (h *Handler) remember(r *http.Request, info *request.RequestInfo, caller Caller) {
	if caller.Node {
		return
	}
	ctx := context.WithoutCancel(r.Context())
	// What it says is for later; the answer has been given.
	go func() { _ = h.Access.Check(ctx, caller, info) }()
}

// answer answers from what the node holds.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, info *request.RequestInfo, caller Caller) bool {
	if err := h.Access.Check(r.Context(), caller, info); err != nil {
		fail(w, r, err)
		return true
	}
	h.count(info, sourceLocal)
	resource := resourceOf(info)
	q, err := newQuery(r, info, h.collections.Of(resource))
	if err != nil {
		fail(w, r, err)
		return true
	}
	q.encoder.printer = h.printer(resource)
	if h.kubelets(r, info, caller) {
		if h.Edit != nil {
			q.encoder.edit = h.Edit(resource, q.fromStart())
		}
		if h.Listed != nil && q.fromStart() {
			q.given = func() { h.Listed(resource) }
		}
	}
	switch info.Verb {
	case "get":
		err = q.get(w, r, h.Held)
	case "list":
		h.settle(r.Context(), resource)
		if q.options.ResourceVersion == "" {
			h.barriers.wait(r.Context(), resource)
		}
		err = q.list(w, r)
	case "watch":
		h.settle(r.Context(), resource)
		err = q.watch(w, r)
	}
	if err != nil {
		fail(w, r, err)
	}
	return true
}

// unheld deals with a read of what the node does not hold.
func (h *Handler) unheld(w http.ResponseWriter, r *http.Request, info *request.RequestInfo, caller Caller) bool {
	if h.reach() != CutOff {
		through, asked, answered := h.overhearRead(w, r, info, caller)
		if through == w {
			return false
		}
		h.count(info, sourceUpstream)
		h.Upstream.Pass(through, asked)
		answered()
		return true
	}
	// Not even what the node lacks is anybody's business.
	if err := h.Access.Identify(r.Context(), caller); err != nil {
		fail(w, r, err)
		return true
	}
	resource := resourceOf(info)
	if trusted, why := h.Objects.Trusted(); !trusted && resource == snapshot.Pods {
		if h.ListRefused != nil && caller.Node {
			h.ListRefused()
		}
		h.count(info, sourceNone)
		fail(w, r, apierrors.NewServiceUnavailable("rekindle-agent: the list of pods is held back until the API server can be asked: "+why))
		return true
	}
	// To people on the node something is better than nothing.
	if caller.Node && info.Name == "" {
		if objects, _ := h.Objects.List(resource); len(objects) > 0 {
			return h.answer(w, r, info, caller)
		}
	}
	// Only the API server has it: it is waited for as long as there is hope.
	if reach, _ := h.Upstream.Reach(); reach != CutOff {
		return false
	}
	what := resource.GroupResource().String()
	if info.Name != "" {
		what += " " + strings.TrimPrefix(info.Namespace+"/"+info.Name, "/")
	}
	if h.Missed != nil {
		h.Missed(resource.GroupResource(), client(r))
	}
	h.count(info, sourceNone)
	fail(w, r, notHeld(what))
	return true
}

// holds says whether the node knows all that a request could be answered with.
func (h *Handler) holds(info *request.RequestInfo, r *http.Request, caller Caller) bool {
	resource := resourceOf(info)
	if !h.Objects.Known(scopeOf(info)) {
		return false
	}
	switch resource.GroupResource() {
	case schema.GroupResource{Resource: "pods"}:
		// Kubelet deletes the data of pods that a list lacks.
		if trusted, _ := h.Objects.Trusted(); !trusted {
			return false
		}
		if info.Verb == "get" {
			// Of pods, those of this node are held, and a node may see no others.
			key := collection.Key{Namespace: info.Namespace, Name: info.Name}
			return caller.Node || h.collections.Of(resource).Get(key) != nil
		}
		return slices.Contains(requirements(r), "spec.nodeName="+h.Node())
	case podCertificates:
		return info.Verb == "get" || slices.Contains(requirements(r), "spec.nodeName="+h.Node())
	case schema.GroupResource{Resource: "nodes"}:
		return info.Name == h.Node()
	}
	return true
}

// kubelets says whether a request is one of those that kubelet's own picture of node and
// pods comes from.
func (h *Handler) kubelets(r *http.Request, info *request.RequestInfo, caller Caller) bool {
	own := slices.Contains(requirements(r), "spec.nodeName="+h.Node()) || info.Resource == "nodes" && info.Name == h.Node()
	return own && info.Verb != "get" && caller.kubelet(r)
}

func requirements(r *http.Request) []string {
	return strings.Split(r.URL.Query().Get("fieldSelector"), ",")
}

// settle holds a list back, within the freshness wait, until the mirror has seen the
// collection in this boot. A refusal instead would cost kubelet's reflector its backoff.
func (h *Handler) settle(ctx context.Context, resource schema.GroupVersionResource) {
	until, ok := h.freshUntil()
	for ok && h.doubt.clock.Now().Before(until) && h.reach() != CutOff {
		if at, ok := h.Objects.InStep(resource); ok && !at.Before(h.started) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(settleEvery):
		}
	}
}

const settleEvery = 10 * time.Millisecond

func (h *Handler) plainTable(r *http.Request, resource schema.GroupVersionResource) bool {
	form, ok := negotiate(r.Header.Get("Accept"))
	return ok && form == formTable && h.printer(resource).Plain()
}

// definitions are where columns of custom resources come from, if they are held.
var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

func (h *Handler) printer(resource schema.GroupVersionResource) *table.Printer {
	usual := table.For(resource.GroupResource())
	definition, ok := h.Objects.Get(definitions, "", resource.Resource+"."+resource.Group)
	if !ok {
		return usual
	}
	columns, err := table.Custom(definition.Raw, resource.Version)
	if err != nil {
		h.Log.V(4).Info("Columns of a custom resource cannot be used", "resource", resource.Resource, "reason", err.Error())
		return usual
	}
	return columns
}

// client is the first word of a caller's name for itself, without its version.
func client(r *http.Request) string {
	name, _, _ := strings.Cut(r.UserAgent(), "/")
	return name
}
