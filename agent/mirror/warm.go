package mirror

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rekindle.edge/agent/host"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

// warmRetry is the pause before an entry that the server does not know is looked for again.
const warmRetry = 30 * time.Second

// runWarm follows the policy's warm list, entry by entry.
func (s *session) runWarm(ctx context.Context) {
	type entry struct {
		resource v1alpha1.WarmResource
		stop     func()
		done     chan struct{}
	}
	var entries []entry
	for {
		wanted := s.m.currentSpec().CacheWarmup.Resources
		entries = slices.DeleteFunc(entries, func(e entry) bool {
			if slices.ContainsFunc(wanted, func(w v1alpha1.WarmResource) bool { return equality.Semantic.DeepEqual(w, e.resource) }) {
				return false
			}
			e.stop()
			<-e.done
			return true
		})
		s.forgetWarm(wanted)
		for _, resource := range wanted {
			if slices.ContainsFunc(entries, func(e entry) bool { return equality.Semantic.DeepEqual(resource, e.resource) }) {
				continue
			}
			ctx, stop := context.WithCancel(ctx)
			e := entry{resource: resource, stop: stop, done: make(chan struct{})}
			entries = append(entries, e)
			go func() {
				defer close(e.done)
				s.warm(ctx, resource)
			}()
		}
		select {
		case <-ctx.Done():
			for _, e := range entries {
				e.stop()
				<-e.done
			}
			return
		case <-s.m.specChanged:
			signal(s.tokensMoved)
		}
	}
}

// mirrored says whether a collection is kept in any case, whole or as far as a node may.
func mirrored(resource schema.GroupResource) bool {
	for _, base := range append([]schema.GroupVersionResource{pods, podCertificates}, baseCollections...) {
		if base.GroupResource() == resource {
			return true
		}
	}
	return false
}

// warm follows one entry until ctx ends.
func (s *session) warm(ctx context.Context, entry v1alpha1.WarmResource) {
	group := schema.GroupResource{Group: entry.Group, Resource: entry.Resource}
	if mirrored(group) {
		return
	}
	selector, err := metav1.LabelSelectorAsSelector(entry.LabelSelector)
	if err != nil {
		s.log.Error(err, "Entry of the warm list has a label selector that cannot be parsed", "resource", group.String())
		return
	}
	resource, err := s.resolve(ctx, group)
	if err != nil {
		return
	}
	namespaces := entry.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	var running sync.WaitGroup
	for _, namespace := range namespaces {
		t := target{scope: snapshot.Scope{Resource: resource, Namespace: namespace}}
		var to sink = collection{s.m.objects, t.scope}
		if selects(entry) {
			t.labels = selector.String()
			to = &selection{objects: s.m.objects, scope: t.scope}
		}
		f := s.newFollower(t, to)
		f.state.warm, f.budget = true, s.warmth
		running.Go(func() { s.follow(ctx, f) })
	}
	running.Wait()
}

// resolve finds the version that the server prefers of a resource, however long it takes.
func (s *session) resolve(ctx context.Context, resource schema.GroupResource) (schema.GroupVersionResource, error) {
	state := &scopeState{scope: snapshot.Scope{Resource: resource.WithVersion("")}, warm: true}
	s.m.track(state)
	defer s.m.untrack(state)
	for {
		version, err := s.preferred(ctx, resource)
		if err == nil {
			return resource.WithVersion(version), nil
		}
		if ctx.Err() != nil {
			return schema.GroupVersionResource{}, ctx.Err()
		}
		state.left(s.m, err)
		if !answered(err) {
			if err := s.verify.wait(ctx); err != nil {
				return schema.GroupVersionResource{}, err
			}
			continue
		}
		host.Sleep(ctx, warmRetry)
	}
}

func (s *session) preferred(ctx context.Context, resource schema.GroupResource) (string, error) {
	versions := []string{"v1"}
	if resource.Group != "" {
		var group metav1.APIGroup
		if err := s.client.readJSON(ctx, "/apis/"+resource.Group, nil, &group); err != nil {
			return "", err
		}
		versions = []string{group.PreferredVersion.Version}
		for _, v := range group.Versions {
			versions = append(versions, v.Version)
		}
	}
	for _, version := range versions {
		path := "/apis/" + resource.Group + "/" + version
		if resource.Group == "" {
			path = "/api/" + version
		}
		var list metav1.APIResourceList
		if err := s.client.readJSON(ctx, path, nil, &list); err != nil {
			return "", err
		}
		if slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource.Resource }) {
			return version, nil
		}
	}
	return "", apierrors.NewNotFound(resource, "")
}

// forgetWarm drops collections that the policy does not list any more.
func (s *session) forgetWarm(wanted []v1alpha1.WarmResource) {
	for _, scope := range s.m.objects.Scopes() {
		group := scope.Resource.GroupResource()
		// What the closure keeps, it lets go of itself.
		if mirrored(group) || byClosure[scope.Resource] && (scope.Name != "" || scope.Resource == trustBundles) || scope == s.nodeTarget().scope {
			continue
		}
		if !slices.ContainsFunc(wanted, func(w v1alpha1.WarmResource) bool { return covers(w, scope) }) {
			if err := s.m.objects.Forget(scope); err != nil {
				s.log.Error(err, "Collection that the policy does not list cannot be forgotten yet", "resource", group.String())
			}
		}
	}
}

// selects says whether an entry limits its objects by their labels.
func selects(entry v1alpha1.WarmResource) bool {
	return entry.LabelSelector != nil && len(entry.LabelSelector.MatchLabels)+len(entry.LabelSelector.MatchExpressions) > 0
}

// covers says whether a scope is, or belongs to, an entry's.
func covers(entry v1alpha1.WarmResource, scope snapshot.Scope) bool {
	if entry.Group != scope.Resource.Group || entry.Resource != scope.Resource.Resource {
		return false
	}
	// A collection is known as a whole only when it is mirrored as a whole.
	if selects(entry) != (scope.Name != "") {
		return false
	}
	if len(entry.Namespaces) == 0 {
		return scope.Namespace == "" || scope.Name != ""
	}
	return slices.Contains(entry.Namespaces, scope.Namespace)
}

// selection is the sink of an entry with a label selector. The collection is not known as a
// whole, so each object is a scope of its own, and one that leaves the selection is forgotten:
// it may still exist.
type selection struct {
	objects *snapshot.Objects
	scope   snapshot.Scope
}

func (s *selection) of(o snapshot.Object) snapshot.Scope {
	return snapshot.Scope{Resource: s.scope.Resource, Namespace: o.Namespace, Name: o.Name}
}

func (s *selection) sync(_ string, objects []snapshot.Object) (time.Duration, error) {
	listed := map[snapshot.Scope]bool{}
	for _, o := range objects {
		listed[s.of(o)] = true
		if err := s.objects.Sync(s.of(o), o.ResourceVersion, []snapshot.Object{o}); err != nil {
			return 0, err
		}
	}
	for _, scope := range s.objects.Scopes() {
		inside := scope.Resource == s.scope.Resource && scope.Name != "" && (s.scope.Namespace == "" || scope.Namespace == s.scope.Namespace)
		if inside && !listed[scope] {
			if err := s.objects.Forget(scope); err != nil {
				return 0, err
			}
		}
	}
	return 0, nil
}

func (s *selection) apply(t snapshot.EventType, o snapshot.Object) error {
	switch {
	case t == snapshot.Deleted:
		return s.objects.Forget(s.of(o))
	case !s.objects.Known(s.of(o)):
		return s.objects.Sync(s.of(o), o.ResourceVersion, []snapshot.Object{o})
	}
	return s.objects.Apply(s.of(o), t, o)
}
