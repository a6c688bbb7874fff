package collection

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Set is all collections. One is loaded when it is first asked for.
type Set struct {
	// load reads a collection and the version of its last change.
	load func(schema.GroupVersionResource) ([]*Item, uint64)
	// replace gives what is served in place of an object at a version of the collection, in
	// most cases the object itself.
	replace func(resource schema.GroupVersionResource, item *Item, version uint64) *Item

	mu   sync.Mutex
	held map[schema.GroupVersionResource]*entry
}

// entry is a collection and, while it is being read, the changes that arrive meanwhile.
type entry struct {
	first sync.Once
	// mu keeps changes and reads of one collection in their order.
	mu         sync.Mutex
	collection *Collection
	reading    int
	waiting    []change
}

type change struct {
	renewed bool
	deleted bool
	item    *Item
	version uint64
}

// NewSet reads collections with load. Replace, if not nil, is applied to everything that is
// read or changed.
func NewSet(load func(schema.GroupVersionResource) ([]*Item, uint64), replace func(schema.GroupVersionResource, *Item, uint64) *Item) *Set {
	if replace == nil {
		replace = func(_ schema.GroupVersionResource, item *Item, _ uint64) *Item { return item }
	}
	return &Set{load: load, replace: replace, held: map[schema.GroupVersionResource]*entry{}}
}

func (s *Set) entry(resource schema.GroupVersionResource, add bool) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.held[resource]
	if e == nil && add {
		e = &entry{}
		s.held[resource] = e
	}
	return e
}

// Of is a resource's collection.
func (s *Set) Of(resource schema.GroupVersionResource) *Collection {
	e := s.entry(resource, true)
	e.first.Do(func() { s.read(resource, e) })
	return e.collection
}

// read reads a collection. Changes that arrive meanwhile are put on top; those that the
// read has seen are known by their version.
func (s *Set) read(resource schema.GroupVersionResource, e *entry) {
	e.mu.Lock()
	e.reading++
	e.mu.Unlock()
	items, version := s.load(resource)
	for i := range items {
		items[i] = s.replace(resource, items[i], version)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reading--
	if e.collection == nil {
		e.collection = newCollection(items, version)
	} else {
		e.collection.restart(items, version)
	}
	for _, c := range e.waiting {
		switch {
		case c.renewed:
			s.renew(resource, e.collection, c.item)
		case c.version > version:
			e.collection.apply(c.deleted, c.item, c.version)
		}
	}
	if e.reading == 0 {
		e.waiting = nil
	}
}

// Apply makes a change as the snapshot tells it.
func (s *Set) Apply(resource schema.GroupVersionResource, deleted bool, item *Item, version uint64) {
	if !deleted {
		item = s.replace(resource, item, version)
	}
	s.Put(resource, deleted, item, version)
}

// Put makes a change that is served as it is.
func (s *Set) Put(resource schema.GroupVersionResource, deleted bool, item *Item, version uint64) {
	e := s.entry(resource, false)
	if e == nil {
		return // will be read whole
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.reading > 0 || e.collection == nil {
		e.waiting = append(e.waiting, change{deleted: deleted, item: item, version: version})
		return
	}
	e.collection.apply(deleted, item, version)
}

// Renew applies what is served in place of a stored object anew: it depends on something
// else, which has changed.
func (s *Set) Renew(resource schema.GroupVersionResource, item *Item) {
	e := s.entry(resource, false)
	if e == nil {
		return // will be read whole
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.reading > 0 || e.collection == nil {
		e.waiting = append(e.waiting, change{renewed: true, item: item})
		return
	}
	s.renew(resource, e.collection, item)
}

func (s *Set) renew(resource schema.GroupVersionResource, of *Collection, item *Item) {
	version, _ := of.Version()
	of.apply(false, s.replace(resource, item, version+1), version+1)
}

// Advance tells that nothing has changed up to a version.
func (s *Set) Advance(resource schema.GroupVersionResource, version uint64) {
	if e := s.entry(resource, false); e != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.collection != nil {
			e.collection.advance(version)
		}
	}
}

// Break reads a collection anew: its line of versions does not go on. All who watch it are
// told to list again.
func (s *Set) Break(resource schema.GroupVersionResource) {
	e := s.entry(resource, false)
	if e == nil {
		return
	}
	s.Of(resource)
	s.read(resource, e)
}

// BreakAll does so for every collection.
func (s *Set) BreakAll() {
	s.mu.Lock()
	held := make([]schema.GroupVersionResource, 0, len(s.held))
	for resource := range s.held {
		held = append(held, resource)
	}
	s.mu.Unlock()
	for _, resource := range held {
		s.Break(resource)
	}
}
