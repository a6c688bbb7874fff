package collection

import (
	"errors"
	"slices"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/watch"
)

// window is how many changes a collection keeps for watches that are behind.
const window = 512

var (
	// ErrGone says that changes since the asked version are not known any more.
	ErrGone = errors.New("too old resource version")
	// ErrAhead says that the asked version has not been reached.
	ErrAhead = errors.New("too large resource version")
)

// Event is one change. Previous is the object before it, nil if there was none.
type Event struct {
	Type     watch.EventType
	Version  uint64
	Item     *Item
	Previous *Item
}

// Collection is one resource's objects. Its methods are safe for concurrent use.
type Collection struct {
	mu      sync.Mutex
	items   map[Key]*Item
	sorted  []*Item // nil: to be made
	version uint64
	// oldest is the first version that a watch can go on from.
	oldest uint64
	events []Event
	// passed counts the events that have left the window, epoch the breaks of the line.
	passed, epoch int
	changed       chan struct{}
}

func newCollection(items []*Item, version uint64) *Collection {
	c := &Collection{changed: make(chan struct{})}
	c.fill(items, version)
	return c
}

// fill begins a new line above all that was served.
func (c *Collection) fill(items []*Item, version uint64) {
	c.items, c.sorted = make(map[Key]*Item, len(items)), nil
	for _, item := range items {
		c.items[item.Key()] = item
		version = max(version, number(item.ResourceVersion))
	}
	// One more than what is known, so that a version that an earlier line gave out is
	// never taken for one of this.
	c.version = max(c.version, version) + 1
	c.oldest = c.version
	c.passed, c.events = c.passed+len(c.events), nil
	c.epoch++
	c.wake()
}

// restart breaks the line.
func (c *Collection) restart(items []*Item, version uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fill(items, version)
}

func (c *Collection) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

func number(version string) uint64 {
	n, _ := strconv.ParseUint(version, 10, 64)
	return n
}

// apply makes a change, at the version or above. It does nothing when it changes nothing.
func (c *Collection) apply(deleted bool, item *Item, version uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	previous := c.items[item.Key()]
	event := Event{Type: watch.Modified, Item: item, Previous: previous}
	switch {
	case deleted && previous == nil:
		return
	case deleted:
		event.Type = watch.Deleted
		delete(c.items, item.Key())
	case previous == nil:
		event.Type = watch.Added
		c.items[item.Key()] = item
	case previous.ResourceVersion == item.ResourceVersion && previous.UID == item.UID:
		return
	default:
		c.items[item.Key()] = item
	}
	c.version = max(c.version+1, version, number(item.ResourceVersion))
	event.Version = c.version
	c.sorted = nil
	c.events = append(c.events, event)
	if len(c.events) > window {
		c.oldest = c.events[0].Version
		c.events[0] = Event{}
		c.events = c.events[1:]
		c.passed++
	}
	c.wake()
}

// advance raises the version without a change: nothing happened up to it.
func (c *Collection) advance(version uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if version > c.version {
		c.version = version
		c.wake()
	}
}

// Get is one object, nil if there is none.
func (c *Collection) Get(key Key) *Item {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.items[key]
}

// List is all objects in the API server's order, and the version they are at. The caller
// must not change the slice.
func (c *Collection) List() ([]*Item, uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.list(), c.version
}

func (c *Collection) list() []*Item {
	if c.sorted == nil {
		c.sorted = make([]*Item, 0, len(c.items))
		for _, item := range c.items {
			c.sorted = append(c.sorted, item)
		}
		slices.SortFunc(c.sorted, func(a, b *Item) int { return Compare(a.Key(), b.Key()) })
	}
	return c.sorted
}

// Version is the present one. The channel is closed when it has changed.
func (c *Collection) Version() (uint64, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version, c.changed
}
