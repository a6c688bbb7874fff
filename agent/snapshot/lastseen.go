package snapshot

import (
	"maps"

	"rekindle.edge/agent/timeline"
)

// Book keeps the pods last seen and knows which of them are not in the store yet. It is
// not safe for concurrent use.
type Book struct {
	stored, seen map[string]timeline.LastSeen
	// held are pods that are not Ready any more and are remembered as if they were.
	held   map[string]timeline.LastSeen
	listed bool
}

// NewBook begins with what is stored.
func NewBook(contents Contents) *Book {
	return &Book{stored: maps.Clone(contents.Pods), seen: maps.Clone(contents.Pods),
		held: map[string]timeline.LastSeen{}, listed: contents.Listed}
}

// List takes a complete list. Hold: see See.
func (b *Book) List(pods []timeline.PodSeen, hold func(key string) bool) {
	listed := map[string]bool{}
	for _, pod := range pods {
		listed[pod.Pod.Key] = true
		b.See(pod.Pod, hold)
	}
	for key := range b.seen {
		if !listed[key] {
			b.Gone(key)
		}
	}
	if !b.listed {
		// Also an empty list is worth knowing; nothing else would write it.
		b.listed, b.stored = true, nil
	}
}

// See takes one pod. A pod that is held stays Ready if it was: until a recovery has given it
// back, what it was before the restart counts, or a second restart would not expect it.
func (b *Book) See(pod timeline.Pod, hold func(key string) bool) {
	seen := timeline.LastSeen{Name: pod.Name, Ready: pod.Alive, Finished: pod.Finished, Deleting: pod.Deleting}
	delete(b.held, pod.Key)
	if old, ok := b.seen[pod.Key]; ok && old.Ready && !seen.Ready && hold(pod.Key) {
		b.held[pod.Key] = seen
		seen.Ready = true
		// One that restarts always and failed in the shutdown is not back either.
		seen.Finished = seen.Finished && !pod.Restarts
	}
	b.seen[pod.Key] = seen
}

// Gone forgets a pod.
func (b *Book) Gone(key string) {
	delete(b.seen, key)
	delete(b.held, key)
}

// Release takes the pods that are not held any more as they are.
func (b *Book) Release(hold func(key string) bool) {
	for key, pod := range b.held {
		if !hold(key) {
			b.seen[key] = pod
			delete(b.held, key)
		}
	}
}

// Changes are what the store lacks. Lost says whether a pod among them stopped being Ready
// or finished.
func (b *Book) Changes() (changed map[string]timeline.LastSeen, gone []string, lost bool) {
	changed = map[string]timeline.LastSeen{}
	for key, pod := range b.seen {
		old, ok := b.stored[key]
		if ok && old == pod {
			continue
		}
		changed[key] = pod
		lost = lost || (ok && old.Ready && !pod.Ready) || (ok && !old.Finished && pod.Finished)
	}
	for key := range b.stored {
		if _, ok := b.seen[key]; !ok {
			gone = append(gone, key)
		}
	}
	return changed, gone, lost
}

// Dirty says whether there are changes to store.
func (b *Book) Dirty() bool { return (b.listed && b.stored == nil) || !maps.Equal(b.stored, b.seen) }

// Stored tells the book that its changes are in the store.
func (b *Book) Stored() { b.stored = maps.Clone(b.seen) }
