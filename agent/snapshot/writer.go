package snapshot

import (
	"cmp"
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"rekindle.edge/agent/snapshot/durable"
)

// errClosed: the store was closed.
var errClosed = errors.New("the store is closed")

// do hands a change to the writer and waits until it is as durable as it must be.
func (o *Objects) do(f func(*plan) error) error {
	r := request{plan: f, done: make(chan error, 1)}
	select {
	case <-o.stopped:
		return errClosed
	case o.requests <- r:
	}
	select {
	case err := <-r.done:
		return err
	case <-o.stopped:
		// It may have been the last one that was taken.
		select {
		case err := <-r.done:
			return err
		default:
			return errClosed
		}
	}
}

// run is the writer: the only place where the state changes, so that events have an order.
// Changes that arrive while the disk is busy share the next fsync.
func (o *Objects) run() {
	defer close(o.stopped)
	for first := range o.requests {
		if first.plan == nil {
			close(first.done)
			return
		}
		batch := []request{first}
		for len(o.requests) > 0 && len(batch) < requestQueue {
			next := <-o.requests
			if next.plan == nil {
				o.write(batch)
				close(next.done)
				return
			}
			batch = append(batch, next)
		}
		o.write(batch)
	}
}

// close ends the writer after what was handed to it.
func (o *Objects) close() {
	last := request{done: make(chan error)}
	select {
	case <-o.stopped:
	case o.requests <- last:
		<-o.stopped
	}
}

func (o *Objects) write(batch []request) {
	o.mu.RLock()
	p := newPlan(&o.state, o.vault)
	refused := make([]error, len(batch))
	for i, r := range batch {
		refused[i] = r.plan(p)
	}
	for resource, version := range p.versions {
		c := o.state.collections[resource]
		if c == nil {
			c = &collection{}
		}
		p.changes = append(p.changes, collectionChange(resource, c, version))
	}
	o.mu.RUnlock()
	p.changes = append(p.changes, o.lay(p.tombstones, p.risen)...)
	var err error
	if len(p.changes) > 0 {
		err = o.durable.Write(p.when, p.changes...)
	}
	o.mu.Lock()
	p.publish()
	o.mu.Unlock()
	for _, event := range p.events {
		if event.Resource == Pods && (event.Type == Added || event.Type == Deleted) {
			o.podChanges.Add(1)
		}
	}
	o.tell(p.events)
	for i, r := range batch {
		r.done <- errors.Join(refused[i], err)
	}
}

func (o *Objects) tell(events []Event) {
	if len(events) == 0 {
		return
	}
	o.subscribersMu.Lock()
	subscribers := slices.Collect(maps.Values(o.subscribers))
	o.subscribersMu.Unlock()
	for _, event := range events {
		for _, f := range subscribers {
			f(event)
		}
	}
}

// keptTombstones bounds the pods that are remembered as deleted. Their directories are
// gone long before.
const keptTombstones = 4096

// lay lays tombstones of pods, takes their tokens away, and the oldest tombstones and those
// of pods that are risen.
func (o *Objects) lay(uids, risen []string) []durable.Change {
	if len(uids)+len(risen) == 0 {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	tombstones := o.state.tombstones
	var changes []durable.Change
	for _, uid := range risen {
		delete(tombstones, uid)
		changes = append(changes, durable.Change{Record: durable.Record{Bucket: bucketTombstones, Key: uid}})
	}
	byAge := slices.SortedFunc(maps.Keys(tombstones), func(a, b string) int { return cmp.Compare(tombstones[a], tombstones[b]) })
	var last uint64
	if len(byAge) > 0 {
		last = tombstones[byAge[len(byAge)-1]]
	}
	for _, uid := range uids {
		last++
		tombstones[uid] = last
		changes = append(changes, durable.Change{
			Record: durable.Record{Bucket: bucketTombstones, Key: uid}, Value: binary.BigEndian.AppendUint64(nil, last),
		})
		changes = append(changes, o.dropTokens(func(key TokenKey) bool { return string(key.PodUID) == uid })...)
	}
	for ; len(tombstones) > keptTombstones && len(byAge) > 0; byAge = byAge[1:] {
		delete(tombstones, byAge[0])
		changes = append(changes, durable.Change{Record: durable.Record{Bucket: bucketTombstones, Key: byAge[0]}})
	}
	return changes
}

func (o *Objects) loadTombstone(uid string, value []byte) error {
	if len(value) != 8 {
		return errors.New("a tombstone has no number")
	}
	o.state.tombstones[uid] = binary.BigEndian.Uint64(value)
	return nil
}
