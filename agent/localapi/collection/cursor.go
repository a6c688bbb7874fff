package collection

import "slices"

// Cursor reads changes in their order. It holds no buffer: one that falls behind the window
// is told so.
type Cursor struct {
	collection  *Collection
	next, epoch int
}

// ListAndWatch is all objects, their version, and a cursor for all that comes after.
func (c *Collection) ListAndWatch() ([]*Item, uint64, *Cursor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.list(), c.version, &Cursor{c, c.passed + len(c.events), c.epoch}
}

// WatchFrom is a cursor for all that came after a version. Errors: ErrGone, ErrAhead.
func (c *Collection) WatchFrom(version uint64) (*Cursor, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case version > c.version:
		return nil, ErrAhead
	case version < c.oldest:
		return nil, ErrGone
	}
	i, found := slices.BinarySearchFunc(c.events, version, func(e Event, v uint64) int {
		switch {
		case e.Version < v:
			return -1
		case e.Version > v:
			return 1
		}
		return 0
	})
	if found {
		i++
	}
	return &Cursor{c, c.passed + i, c.epoch}, nil
}

// Next is what has happened since the last call, and the version the collection is at after
// it; the channel is closed when there is more. The error is ErrGone.
func (c *Cursor) Next() ([]Event, uint64, <-chan struct{}, error) {
	of := c.collection
	of.mu.Lock()
	defer of.mu.Unlock()
	if c.epoch != of.epoch || c.next < of.passed {
		return nil, 0, nil, ErrGone
	}
	events := slices.Clone(of.events[c.next-of.passed:])
	c.next += len(events)
	return events, of.version, of.changed, nil
}
