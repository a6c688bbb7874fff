package mirror

import (
	"fmt"
	"sync"
	"time"

	"rekindle.edge/agent/snapshot"
)

// The closure of the node's pods is as large as it is. A policy's warm list may name a
// collection of any size, and the agent, which is the last that is killed when memory runs
// out, must not take it all: what is too large is left out as a whole, and told.

const (
	// warmBytes is how much of the warm list is kept in memory, all entries together.
	warmBytes = 32 << 20
	// tooLargePause is the pause before an entry that was too large is looked at again.
	tooLargePause = 10 * time.Minute
	// pageBytes is what a page should not be much larger than: the next one is asked for with
	// fewer objects.
	pageBytes = 4 << 20
)

// tooLargeError says that an entry of the warm list does not fit.
type tooLargeError struct{ most int }

func (e tooLargeError) Error() string {
	return fmt.Sprintf("its objects are larger than the %d KiB that are left for the warm list", e.most>>10)
}

// budget is what the entries of the warm list share.
type budget struct {
	mu   sync.Mutex
	most int
	used map[*follower]int
}

// left is how many bytes a follower's objects may have.
func (b *budget) left(of *follower) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := b.most
	for f, used := range b.used {
		if f != of {
			left -= used
		}
	}
	return max(left, 0)
}

// take notes how many bytes a follower's objects have.
func (b *budget) take(of *follower, bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if bytes == 0 {
		delete(b.used, of)
		return
	}
	b.used[of] = bytes
}

func sizeOf(objects []snapshot.Object) int {
	size := 0
	for _, o := range objects {
		size += len(o.Raw)
	}
	return size
}

// grow counts a change that is about to be taken. It is a tooLargeError if that is one too
// many.
func (f *follower) grow(t snapshot.EventType, o snapshot.Object) error {
	if f.budget == nil {
		return nil
	}
	before, _ := f.m.objects.Get(f.target.scope.Resource, o.Namespace, o.Name)
	f.bytes -= len(before.Raw)
	if t != snapshot.Deleted {
		f.bytes += len(o.Raw)
	}
	most := f.budget.left(f)
	f.budget.take(f, f.bytes)
	if f.bytes > most {
		return tooLargeError{most}
	}
	return nil
}

// drop forgets what is held of a warm entry that has grown too large: a part of it would be
// taken for all.
func (f *follower) drop() {
	f.bytes, f.version = 0, ""
	f.budget.take(f, 0)
	of := f.target.scope
	for _, scope := range f.m.objects.Scopes() {
		if scope.Resource != of.Resource || of.Namespace != "" && scope.Namespace != of.Namespace || byClosure[scope.Resource] {
			continue
		}
		if err := f.m.objects.Forget(scope); err != nil {
			f.log.Error(err, "Collection that is too large cannot be forgotten yet", "resource", of.Resource.Resource)
		}
	}
}
