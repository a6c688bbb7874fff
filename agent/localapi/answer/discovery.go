package answer

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/endpoints/request"
)

const (
	discoveryKind = "discovery"
	// aggregated is the form of discovery that says everything in one answer.
	aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	// discoverEvery is how often what the API server offers is read, also when it may not
	// have changed.
	discoverEvery = time.Hour
	// discoverRetry is the pace of looking whether the API server can be reached.
	discoverRetry = time.Second
)

// discovered are the paths that are kept, with the form they are read in.
var discovered = map[string]string{"/api": aggregated, "/apis": aggregated, "/version": "application/json"}

// Memory keeps what can be found out again when connected.
type Memory interface {
	Remember(kind, key string, value []byte)
	Remembered(kind string) map[string][]byte
}

// Discover reads what the API server offers whenever it can be reached, until ctx ends.
// Read reads a path in a form.
func (h *Handler) Discover(ctx context.Context, read func(ctx context.Context, path, accept string) ([]byte, error)) {
	for ctx.Err() == nil {
		pause := discoverRetry
		if reach, _ := h.Upstream.Reach(); reach == Linked && h.discover(ctx, read) {
			pause = discoverEvery
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait.Jitter(pause/2, 1)):
		}
	}
}

func (h *Handler) discover(ctx context.Context, read func(ctx context.Context, path, accept string) ([]byte, error)) bool {
	kept := h.Memory.Remembered(discoveryKind)
	for path, accept := range discovered {
		body, err := read(ctx, path, accept)
		if err != nil || !json.Valid(body) {
			h.Log.V(4).Info("What the API server offers could not be read", "path", path)
			return false
		}
		if string(kept[path]) != string(body) {
			h.Memory.Remember(discoveryKind, path, body)
		}
	}
	return true
}

// discovery answers what the API server offers, as it was last read, while it is out of
// reach.
func (h *Handler) discovery(w http.ResponseWriter, r *http.Request, info *request.RequestInfo, caller Caller) bool {
	if h.Memory == nil || r.Method != http.MethodGet || h.reach() != CutOff {
		return false
	}
	parts := strings.Split(strings.Trim(info.Path, "/"), "/")
	root := "/" + parts[0]
	body := h.Memory.Remembered(discoveryKind)[root]
	if _, ok := discovered[root]; !ok || body == nil {
		return false
	}
	if err := h.Access.Identify(r.Context(), caller); err != nil {
		fail(w, r, err)
		return true
	}
	switch {
	case len(parts) == 1 && root == "/version":
		respond(w, r, http.StatusOK, body)
	case len(parts) == 1 && strings.Contains(r.Header.Get("Accept"), "as=APIGroupDiscoveryList"):
		w.Header().Set("Content-Type", aggregated)
		respond(w, r, http.StatusOK, body)
	default:
		h.legacyDiscovery(w, r, parts, body)
	}
	return true
}

// legacyDiscovery answers clients that ask step by step.
func (h *Handler) legacyDiscovery(w http.ResponseWriter, r *http.Request, parts []string, body []byte) {
	var groups apidiscoveryv2.APIGroupDiscoveryList
	if err := json.Unmarshal(body, &groups); err != nil {
		fail(w, r, err)
		return
	}
	found := legacy(groups, parts)
	if found == nil {
		fail(w, r, apierrors.NewNotFound(schema.GroupResource{}, strings.Join(parts, "/")))
		return
	}
	respondObject(w, r, http.StatusOK, found)
}

// legacy is what is at a path below /api or /apis; nil: nothing.
func legacy(groups apidiscoveryv2.APIGroupDiscoveryList, parts []string) any {
	var list []metav1.APIGroup
	for _, group := range groups.Items {
		converted := metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: group.Name}
		for _, version := range group.Versions {
			gv := strings.TrimPrefix(group.Name+"/"+version.Version, "/")
			converted.Versions = append(converted.Versions, metav1.GroupVersionForDiscovery{GroupVersion: gv, Version: version.Version})
			if gv == strings.Join(parts[1:], "/") {
				return resources(gv, version)
			}
		}
		if len(converted.Versions) > 0 {
			converted.PreferredVersion = converted.Versions[0]
		}
		if len(parts) == 2 && parts[0] == "apis" && parts[1] == group.Name {
			return &converted
		}
		list = append(list, converted)
	}
	switch {
	case len(parts) > 1:
		return nil
	case parts[0] == "api":
		versions := &metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{}}
		for _, group := range list {
			for _, version := range group.Versions {
				versions.Versions = append(versions.Versions, version.Version)
			}
		}
		return versions
	}
	return &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: list}
}

func resources(groupVersion string, version apidiscoveryv2.APIVersionDiscovery) *metav1.APIResourceList {
	list := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: groupVersion, APIResources: []metav1.APIResource{}}
	for _, of := range version.Resources {
		resource := metav1.APIResource{
			Name: of.Resource, SingularName: of.SingularResource, Namespaced: of.Scope == apidiscoveryv2.ScopeNamespace,
			Verbs: of.Verbs, ShortNames: of.ShortNames, Categories: of.Categories,
		}
		if of.ResponseKind != nil {
			resource.Kind = of.ResponseKind.Kind
		}
		list.APIResources = append(list.APIResources, resource)
		for _, sub := range of.Subresources {
			below := metav1.APIResource{Name: of.Resource + "/" + sub.Subresource, Namespaced: resource.Namespaced, Verbs: sub.Verbs}
			if sub.ResponseKind != nil {
				below.Kind, below.Group, below.Version = sub.ResponseKind.Kind, sub.ResponseKind.Group, sub.ResponseKind.Version
			}
			list.APIResources = append(list.APIResources, below)
		}
	}
	return list
}
