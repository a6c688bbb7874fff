package snapshot

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// state is what is known of the API.
type state struct {
	collections map[schema.GroupVersionResource]*collection
	scopes      map[Scope]bool
	// tombstones of pods, and when each was laid in the order of laying.
	tombstones map[string]uint64
	overlay    map[OverlayKey][]byte
	verdict    verdict
}

type collection struct {
	version uint64
	inStep  time.Time
	objects map[ref]Object
	// sorted is the list by namespace and name; nil: it is to be made again.
	sorted []Object
}

func newState() state {
	return state{
		collections: map[schema.GroupVersionResource]*collection{}, scopes: map[Scope]bool{},
		tombstones: map[string]uint64{}, overlay: map[OverlayKey][]byte{},
	}
}

func (s *state) podsKnown() bool {
	for scope := range s.scopes {
		if isPodList(scope) {
			return true
		}
	}
	return false
}

func (s *state) collection(resource schema.GroupVersionResource) *collection {
	c := s.collections[resource]
	if c == nil {
		c = &collection{objects: map[ref]Object{}}
		s.collections[resource] = c
	}
	return c
}

func (s *state) known(scope Scope) bool {
	// Wider scopes first: collections have one, and it is the usual case.
	return s.scopes[Scope{Resource: scope.Resource}] || s.scopes[Scope{scope.Resource, scope.Namespace, ""}] ||
		s.scopes[Scope{scope.Resource, "", scope.Name}] || s.scopes[scope]
}

func (c *collection) list() []Object {
	if c.sorted == nil {
		c.sorted = slices.SortedFunc(maps.Values(c.objects), func(a, b Object) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
	}
	return c.sorted
}

// stage is a state with changes that nobody sees yet: they are still on their way to the
// disk.
type stage struct {
	base *state
	// objects put, or deleted where nil.
	objects    map[ref]*Object
	scopes     map[Scope]bool
	versions   map[schema.GroupVersionResource]uint64
	tombstones []string
	// risen are pods whose tombstones are wrong.
	risen []string
	// overlays put, or deleted where nil.
	overlays map[OverlayKey][]byte
	// trusted says that a list of pods came from the API server.
	trusted bool
}

func newStage(base *state) *stage {
	return &stage{
		base: base, objects: map[ref]*Object{}, scopes: map[Scope]bool{},
		versions: map[schema.GroupVersionResource]uint64{}, overlays: map[OverlayKey][]byte{},
	}
}

func (s *stage) get(r ref) (Object, bool) {
	if staged, ok := s.objects[r]; ok {
		if staged == nil {
			return Object{}, false
		}
		return *staged, true
	}
	c := s.base.collections[r.resource]
	if c == nil {
		return Object{}, false
	}
	object, ok := c.objects[r]
	return object, ok
}

// within are the objects of a scope.
func (s *stage) within(scope Scope) []ref {
	var found []ref
	if c := s.base.collections[scope.Resource]; c != nil {
		for r := range c.objects {
			if _, staged := s.objects[r]; !staged && scope.covers(r.scope()) {
				found = append(found, r)
			}
		}
	}
	for r, object := range s.objects {
		if object != nil && scope.covers(r.scope()) {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b ref) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	return found
}

func (s *stage) version(resource schema.GroupVersionResource) uint64 {
	if version, ok := s.versions[resource]; ok {
		return version
	}
	if c := s.base.collections[resource]; c != nil {
		return c.version
	}
	return 0
}

// raise lets a collection's version rise, to at least the given one.
func (s *stage) raise(resource schema.GroupVersionResource, atLeast uint64) uint64 {
	version := max(s.version(resource)+1, atLeast)
	s.versions[resource] = version
	return version
}

func (s *stage) known(scope Scope) bool {
	for other, known := range s.scopes {
		if known && other.covers(scope) {
			return true
		}
	}
	for _, other := range []Scope{
		{Resource: scope.Resource}, {scope.Resource, scope.Namespace, ""}, {scope.Resource, "", scope.Name}, scope,
	} {
		if known, staged := s.scopes[other]; s.base.scopes[other] && (!staged || known) {
			return true
		}
	}
	return false
}

// publish makes the changes part of the state.
func (s *stage) publish() {
	for r, object := range s.objects {
		c := s.base.collection(r.resource)
		c.sorted = nil
		if object == nil {
			delete(c.objects, r)
		} else {
			c.objects[r] = *object
		}
	}
	for scope, known := range s.scopes {
		if known {
			s.base.scopes[scope] = true
		} else {
			delete(s.base.scopes, scope)
		}
	}
	for resource, version := range s.versions {
		s.base.collection(resource).version = version
	}
	if s.trusted {
		s.base.verdict = verdict{}
	}
	for key, value := range s.overlays {
		if value == nil {
			delete(s.base.overlay, key)
		} else {
			s.base.overlay[key] = value
		}
	}
}
