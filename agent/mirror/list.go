package mirror

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"rekindle.edge/agent/snapshot"
)

// pageSize bounds how much of a list is in memory twice.
const pageSize = 500

// list reads a collection as of now, in pages, and the version it has. Limit bounds what is
// read: 0 is all.
func (c *client) list(ctx context.Context, t target, limit int) ([]snapshot.Object, string, error) {
	var objects []snapshot.Object
	query, size, bytes := t.query(), pageSize, 0
	query.Set("limit", strconv.Itoa(size))
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	for {
		page, err := c.page(ctx, t, query)
		if apierrors.IsResourceExpired(err) && query.Has("continue") {
			if t.bounded {
				return nil, "", err // from the start
			}
			// The rest is too old by now: all at once, then.
			objects = nil
			query.Del("continue")
			query.Del("limit")
			continue
		}
		if err != nil {
			return nil, "", err
		}
		objects = append(objects, page.objects...)
		read := sizeOf(page.objects)
		if bytes += read; t.bounded && bytes > t.most {
			return nil, "", tooLargeError{t.most}
		}
		if read > pageBytes && query.Has("limit") && limit == 0 {
			size = max(1, size/4)
			query.Set("limit", strconv.Itoa(size))
		}
		if page.next == "" || limit > 0 {
			return objects, page.version, nil
		}
		query.Set("continue", page.next)
	}
}

type page struct {
	objects       []snapshot.Object
	version, next string
}

func (c *client) page(ctx context.Context, t target, query url.Values) (page, error) {
	var list struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			ResourceVersion string `json:"resourceVersion"`
			Continue        string `json:"continue"`
		} `json:"metadata"`
		Items []json.RawMessage `json:"items"`
	}
	if err := c.readJSON(ctx, pathOf(t.scope.Resource, t.scope.Namespace), query, &list); err != nil {
		return page{}, err
	}
	kind, ok := strings.CutSuffix(list.Kind, "List")
	if !ok || list.Metadata.ResourceVersion == "" {
		return page{}, fmt.Errorf("listing %s: the answer is no list but a %q", t.scope.Resource.Resource, list.Kind)
	}
	p := page{version: list.Metadata.ResourceVersion, next: list.Metadata.Continue}
	for i, item := range list.Items {
		o, err := object(item, list.APIVersion, kind)
		if err != nil {
			return page{}, fmt.Errorf("listing %s: %w", t.scope.Resource.Resource, err)
		}
		list.Items[i] = nil
		p.objects = append(p.objects, o)
	}
	return p, nil
}
