package collection

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

func pod(name, version string) *Item {
	return &Item{
		Namespace: "default", Name: name, ResourceVersion: version,
		Raw: fmt.Appendf(nil, `{"metadata":{"name":%q,"labels":{"app":%q}},"spec":{"nodeName":"edge-1","hostNetwork":true}}`, name, name),
	}
}

// told is what a cursor tells, in short.
func told(t *testing.T, cursor *Cursor) []string {
	t.Helper()
	events, _, _, err := cursor.Next()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range events {
		all = append(all, fmt.Sprint(e.Type, " ", e.Item.Name, " ", e.Version))
	}
	return all
}

func TestWatchFrom(t *testing.T) {
	// Read at 10, so the line begins at 11.
	fill := func() *Collection {
		c := newCollection([]*Item{pod("a", "10")}, 5)
		c.apply(false, pod("a", "20"), 20)
		c.apply(false, pod("b", "15"), 21) // a version of another watch: above the last all the same
		c.apply(true, pod("a", "20"), 22)
		c.apply(true, pod("c", "1"), 23) // was never there
		c.apply(false, pod("b", "15"), 24)
		c.advance(30)
		return c
	}
	cases := map[string]struct {
		from    uint64
		want    []string
		wantErr error
	}{
		"from the start of the line":                   {from: 11, want: []string{"MODIFIED a 20", "ADDED b 21", "DELETED a 22"}},
		"from a change":                                {from: 20, want: []string{"ADDED b 21", "DELETED a 22"}},
		"from between changes":                         {from: 12, want: []string{"MODIFIED a 20", "ADDED b 21", "DELETED a 22"}},
		"from an object's version below its change's":  {from: 15, want: []string{"MODIFIED a 20", "ADDED b 21", "DELETED a 22"}},
		"from the last":                                {from: 22},
		"from where nothing happened":                  {from: 30},
		"from a version that an earlier line gave out": {from: 10, wantErr: ErrGone},
		"from a version not reached":                   {from: 31, wantErr: ErrAhead},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cursor, err := fill().WatchFrom(tc.from)
			if !errors.Is(err, tc.wantErr) {
				t.Fatalf("error %v, want %v", err, tc.wantErr)
			}
			if err == nil {
				if diff := cmp.Diff(tc.want, told(t, cursor)); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestWindow(t *testing.T) {
	c := newCollection(nil, 0)
	_, version, slow := c.ListAndWatch()
	for i := range window {
		c.apply(false, pod("a", fmt.Sprint(100+i)), 0)
	}
	if _, err := c.WatchFrom(version); err != nil {
		t.Errorf("all changes are in the window: %v", err)
	}
	_, _, quick := c.ListAndWatch()
	c.apply(false, pod("a", "1000"), 0)
	if _, err := c.WatchFrom(version); !errors.Is(err, ErrGone) {
		t.Errorf("one change has left the window: %v", err)
	}
	if _, err := c.WatchFrom(100); err != nil {
		t.Errorf("who has seen what left the window has missed nothing: %v", err)
	}
	if _, _, _, err := slow.Next(); !errors.Is(err, ErrGone) {
		t.Errorf("a cursor behind the window: %v", err)
	}
	if got := told(t, quick); len(got) != 1 {
		t.Errorf("a cursor within the window: %v", got)
	}
}

func TestSet(t *testing.T) {
	stored, version := []*Item{pod("a", "5")}, uint64(7)
	var meanwhile func()
	s := NewSet(func(schema.GroupVersionResource) ([]*Item, uint64) {
		items, at := append([]*Item{}, stored...), version
		if meanwhile != nil {
			meanwhile()
		}
		return items, at
	}, nil)
	s.Apply(pods, false, pod("x", "6"), 6) // nobody reads it yet, and the store has it or has not
	meanwhile = func() {
		s.Apply(pods, true, pod("a", "5"), 7) // what the read has seen already
		s.Apply(pods, false, pod("b", "9"), 9)
	}
	c := s.Of(pods)
	if got := names(c); got != "a b " {
		t.Errorf("changes during the load: %q", got)
	}
	_, before, cursor := c.ListAndWatch()
	meanwhile, stored, version = nil, []*Item{pod("z", "3")}, 3
	s.BreakAll()
	if got := names(c); got != "z " {
		t.Errorf("after the break: %q", got)
	}
	if _, _, _, err := cursor.Next(); !errors.Is(err, ErrGone) {
		t.Errorf("a cursor across the break: %v", err)
	}
	if _, err := c.WatchFrom(before); !errors.Is(err, ErrGone) {
		t.Errorf("a version from before the break: %v", err)
	}
	if after, _ := c.Version(); after <= before {
		t.Errorf("version fell from %d to %d", before, after)
	}
}

func names(c *Collection) (all string) {
	items, _ := c.List()
	for _, item := range items {
		all += item.Name + " "
	}
	return all
}

func TestOrder(t *testing.T) {
	c := newCollection([]*Item{{Namespace: "a", Name: "x"}, {Namespace: "a-b", Name: "y"}, {Namespace: "a", Name: "b"}}, 1)
	if got := names(c); got != "y b x " {
		t.Errorf("order %q is not that of the API server's store", got)
	}
}

func TestFields(t *testing.T) {
	item := pod("a", "1")
	cases := map[string]string{
		"metadata.name": "a", "metadata.namespace": "default", "spec.nodeName": "edge-1", "spec.hostNetwork": "true",
		"spec": "", "status.phase": "", "spec.nodeName.x": "",
	}
	for path, want := range cases {
		if got := item.Field(path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	if item.Labels()["app"] != "a" {
		t.Errorf("labels %v", item.Labels())
	}
	if item.Kind().Kind != "" {
		t.Errorf("kind %v of an object that says none", item.Kind())
	}
}

func TestEventTypes(t *testing.T) {
	c := newCollection(nil, 0)
	_, _, cursor := c.ListAndWatch()
	c.apply(false, pod("a", "1"), 1)
	c.apply(false, pod("a", "2"), 2)
	c.apply(true, pod("a", "2"), 3)
	events, _, _, _ := cursor.Next()
	want := []watch.EventType{watch.Added, watch.Modified, watch.Deleted}
	for i, e := range events {
		if e.Type != want[i] {
			t.Errorf("event %d is %s, want %s", i, e.Type, want[i])
		}
		if (e.Previous == nil) != (i == 0) {
			t.Errorf("event %d has previous %v", i, e.Previous)
		}
	}
}

func TestFieldsThatACallerMakesUpAreNotKept(t *testing.T) {
	item := pod("a", "1")
	for i := range 1000 {
		if got := item.Field(fmt.Sprintf("spec.made.up%d", i)); got != "" {
			t.Fatalf("%q", got)
		}
	}
	if len(item.fields) > fieldsKept {
		t.Errorf("%d fields are kept, want at most %d", len(item.fields), fieldsKept)
	}
	if got := item.Field("spec.nodeName"); got != "edge-1" {
		t.Errorf("spec.nodeName is %q after that", got)
	}
}
