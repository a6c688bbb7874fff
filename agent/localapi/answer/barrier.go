package answer

import (
	"context"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"

	"rekindle.edge/agent/localapi/collection"
)

// A client that has written and lists then must find what it wrote, although the mirror
// hears of it a moment later. A list without a version waits for that, not long: a write
// that changed nothing is never heard of.

// ownWrites is the longest that a list waits for a write.
const ownWrites = time.Second

// barriers are the writes that the mirror has not heard of yet.
type barriers struct {
	mu      sync.Mutex
	waiting map[schema.GroupVersionResource][]<-chan struct{}
}

// raise makes lists wait until an object changes. An empty name stands for any in the
// namespace.
func (b *barriers) raise(resource schema.GroupVersionResource, cursor *collection.Cursor, key collection.Key) {
	done := make(chan struct{})
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == nil {
		b.waiting = map[schema.GroupVersionResource][]<-chan struct{}{}
	}
	b.waiting[resource] = append(b.waiting[resource], done)
	go func() {
		seen(cursor, key)
		close(done)
		b.mu.Lock()
		defer b.mu.Unlock()
		for i, other := range b.waiting[resource] {
			if other == done {
				b.waiting[resource] = append(b.waiting[resource][:i:i], b.waiting[resource][i+1:]...)
				return
			}
		}
	}()
}

func seen(cursor *collection.Cursor, key collection.Key) {
	limit := time.After(ownWrites)
	for {
		events, _, changed, err := cursor.Next()
		if err != nil {
			return
		}
		for _, event := range events {
			if event.Item.Namespace == key.Namespace && (key.Name == "" || event.Item.Name == key.Name) {
				return
			}
		}
		select {
		case <-changed:
		case <-limit:
			return
		}
	}
}

func (b *barriers) wait(ctx context.Context, resource schema.GroupVersionResource) {
	b.mu.Lock()
	waiting := b.waiting[resource]
	b.mu.Unlock()
	for _, done := range waiting {
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
}

// overheard passes what is written to the caller, and tells before that when a write has
// succeeded.
type overheard struct {
	http.ResponseWriter
	succeeded func()
	failed    bool
}

func (o *overheard) WriteHeader(code int) {
	if o.failed = code >= http.StatusMultipleChoices; !o.failed && code >= http.StatusOK {
		o.succeeded()
	}
	o.ResponseWriter.WriteHeader(code)
}

func (o *overheard) Write(data []byte) (int, error) {
	if !o.failed {
		o.succeeded()
	}
	return o.ResponseWriter.Write(data)
}

// Unwrap lets the answer be flushed.
func (o *overheard) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// overhear has lists wait for the write that w answers, if the mirror hears of such, and tells
// of it.
func (h *Handler) overhear(w http.ResponseWriter, info *request.RequestInfo) http.ResponseWriter {
	if info.Subresource != "" && info.Subresource != "status" {
		return w
	}
	scope := scopeOf(info)
	raise := func() {}
	if h.Objects.Known(scope) {
		_, _, cursor := h.collections.Of(scope.Resource).ListAndWatch()
		raise = func() {
			h.barriers.raise(scope.Resource, cursor, collection.Key{Namespace: info.Namespace, Name: info.Name})
		}
	}
	return &overheard{ResponseWriter: w, succeeded: sync.OnceFunc(func() {
		raise()
		if h.Written != nil {
			h.Written(scope)
		}
	})}
}
