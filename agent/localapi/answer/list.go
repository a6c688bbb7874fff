package answer

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/agent/localapi/collection"
)

// catchUp is how long a read waits for a version that the collection has not reached. The
// mirror may be a moment behind what the caller has seen upstream.
const catchUp = time.Second

// list answers a list.
func (q *query) list(w http.ResponseWriter, r *http.Request) error {
	if q.options.version > 0 {
		if err := q.reach(r.Context(), q.options.version); err != nil {
			return err
		}
	}
	all, version := q.collection.List()
	switch o := q.options; {
	case o.from != nil && o.from.Version != version:
		return expired("the collection has changed since the continued list began; list again from the start")
	case o.ResourceVersionMatch == metav1.ResourceVersionMatchExact && o.version < version:
		return expired("this node keeps no older state than " + strconv.FormatUint(version, 10))
	}
	page, meta := q.page(all, version)
	var body bytes.Buffer
	if err := q.encoder.list(&body, page, meta); err != nil {
		return err
	}
	respond(w, r, http.StatusOK, body.Bytes())
	q.tell()
	return nil
}

// page is the part of a list that was asked for.
func (q *query) page(all []*collection.Item, version uint64) ([]*collection.Item, metav1.ListMeta) {
	meta := metav1.ListMeta{ResourceVersion: strconv.FormatUint(version, 10)}
	if from := q.options.from; from != nil {
		i, _ := slices.BinarySearchFunc(all, from.key(), func(item *collection.Item, key collection.Key) int {
			return collection.Compare(item.Key(), key)
		})
		all = all[i:]
	}
	limit := int(q.options.Limit)
	// Like the API server's cache: any version will do, and so will the whole list.
	if q.options.ResourceVersion == "0" {
		limit = 0
	}
	var page []*collection.Item
	for i, item := range all {
		if !q.selection.has(item) {
			continue
		}
		if limit > 0 && len(page) == limit {
			meta.Continue = continuation{version, item.Namespace, item.Name}.String()
			if q.selection.all() {
				left := q.count(all[i:])
				meta.RemainingItemCount = &left
			}
			break
		}
		page = append(page, item)
	}
	return page, meta
}

func (q *query) count(items []*collection.Item) int64 {
	n := int64(0)
	for _, item := range items {
		if q.selection.has(item) {
			n++
		}
	}
	return n
}

// reach waits until the collection has reached a version.
func (q *query) reach(ctx context.Context, version uint64) error {
	ctx, cancel := context.WithTimeout(ctx, catchUp)
	defer cancel()
	for {
		have, changed := q.collection.Version()
		if have >= version {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ahead(version, have)
		}
	}
}
