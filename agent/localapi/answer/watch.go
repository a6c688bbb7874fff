package answer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"rekindle.edge/agent/localapi/collection"
)

const (
	// bookmarkEvery is the pace of bookmarks.
	bookmarkEvery = time.Minute
	// shortestWatch is the time of a watch that asks for none, up to twice as long, as
	// the API server has it.
	shortestWatch = 30 * time.Minute
)

// watcher writes one watch's events.
type watcher struct {
	*query
	w       http.ResponseWriter
	flush   func() error
	columns bool // a table's columns have been written
	sent    uint64
}

// watch answers a watch until it ends.
func (q *query) watch(w http.ResponseWriter, r *http.Request) error {
	timeout := shortestWatch + time.Duration(rand.Int64N(int64(shortestWatch)))
	if q.options.TimeoutSeconds != nil && *q.options.TimeoutSeconds != 0 {
		timeout = time.Duration(*q.options.TimeoutSeconds) * time.Second
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	initial, cursor, version, err := q.begin(ctx)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(http.StatusOK)
	stream := &watcher{query: q, w: w, flush: http.NewResponseController(w).Flush}
	stream.run(ctx, initial, cursor, version)
	return nil
}

// begin finds where a watch starts: what it sends first, and the cursor for the rest.
func (q *query) begin(ctx context.Context) ([]*collection.Item, *collection.Cursor, uint64, error) {
	o := q.options
	fromState := o.version == 0
	if o.SendInitialEvents != nil {
		fromState = *o.SendInitialEvents || o.version == 0
	}
	if o.version > 0 {
		if err := q.reach(ctx, o.version); err != nil {
			return nil, nil, 0, err
		}
	}
	if !fromState {
		cursor, err := q.collection.WatchFrom(o.version)
		if errors.Is(err, collection.ErrGone) {
			return nil, nil, 0, expired(fmt.Sprintf("too old resource version: %d", o.version))
		}
		if err != nil {
			return nil, nil, 0, err
		}
		return nil, cursor, o.version, nil
	}
	items, version, cursor := q.collection.ListAndWatch()
	if o.SendInitialEvents != nil && !*o.SendInitialEvents {
		items = nil
	}
	return items, cursor, version, nil
}

func (s *watcher) run(ctx context.Context, initial []*collection.Item, cursor *collection.Cursor, version uint64) {
	for _, item := range initial {
		if s.selection.has(item) && s.event(watch.Added, item) != nil {
			return
		}
	}
	s.sent = version
	if o := s.options; o.AllowWatchBookmarks && o.SendInitialEvents != nil && *o.SendInitialEvents {
		if s.bookmark(version, map[string]string{metav1.InitialEventsAnnotationKey: "true"}) != nil {
			return
		}
	}
	s.tell()
	bookmarks := time.NewTicker(bookmarkEvery)
	defer bookmarks.Stop()
	for {
		events, version, changed, err := cursor.Next()
		if err != nil {
			s.fail(expired("the node's line of versions was broken; list again"))
			return
		}
		for _, event := range events {
			if s.change(event) != nil {
				return
			}
		}
		if s.flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-bookmarks.C:
			if s.options.AllowWatchBookmarks && version > s.sent && s.bookmark(version, nil) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// change writes an event as the selection has it: what begins to match is added, what ends
// to match is deleted.
func (s *watcher) change(event collection.Event) error {
	was, is := s.selection.has(event.Previous), s.selection.has(event.Item)
	if event.Type == watch.Deleted {
		is = false
	}
	switch {
	case is && was:
		return s.event(watch.Modified, event.Item)
	case is:
		return s.event(watch.Added, event.Item)
	case was:
		return s.event(watch.Deleted, event.Item)
	}
	return nil
}

func (s *watcher) event(kind watch.EventType, item *collection.Item) error {
	var object bytes.Buffer
	if err := s.encoder.object(&object, item, !s.columns); err != nil {
		return err
	}
	s.columns = true
	return s.write(kind, object.Bytes())
}

func (s *watcher) bookmark(version uint64, annotations map[string]string) error {
	s.sent = version
	metadata := map[string]any{"resourceVersion": strconv.FormatUint(version, 10), "creationTimestamp": nil}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	raw, err := json.Marshal(map[string]any{"kind": s.encoder.kind.Kind, "apiVersion": s.encoder.kind.APIVersion, "metadata": metadata})
	if err != nil {
		return err
	}
	plain := *s.encoder
	plain.edit = nil
	var object bytes.Buffer
	if err := plain.object(&object, &collection.Item{ResourceVersion: strconv.FormatUint(version, 10), Raw: raw}, !s.columns); err != nil {
		return err
	}
	if err := s.write(watch.Bookmark, object.Bytes()); err != nil {
		return err
	}
	return s.flush()
}

func (s *watcher) fail(status *apierrors.StatusError) {
	object, err := json.Marshal(withType(status.Status()))
	if err == nil && s.write(watch.Error, object) == nil {
		_ = s.flush()
	}
}

func (s *watcher) write(kind watch.EventType, object []byte) error {
	for _, part := range [][]byte{[]byte(`{"type":"` + string(kind) + `","object":`), bytes.TrimRight(object, "\n"), []byte("}\n")} {
		if _, err := s.w.Write(part); err != nil {
			return err
		}
	}
	return nil
}
