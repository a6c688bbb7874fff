package snapshot

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rekindle.edge/agent/timeline"
)

func never(string) bool  { return false }
func always(string) bool { return true }

func pods(views ...timeline.Pod) []timeline.PodSeen {
	var seen []timeline.PodSeen
	for _, view := range views {
		seen = append(seen, timeline.PodSeen{Pod: view})
	}
	return seen
}

func TestBook(t *testing.T) {
	ready := timeline.Pod{Key: "a", Name: "shop/a", Ready: true, Alive: true}
	broken := timeline.Pod{Key: "a", Name: "shop/a"}
	stored := Contents{Listed: true, Pods: map[string]timeline.LastSeen{"a": {Name: "shop/a", Ready: true}, "b": {Name: "shop/b"}}}
	type changes struct {
		Changed map[string]timeline.LastSeen
		Gone    []string
		Lost    bool
	}
	cases := map[string]struct {
		contents Contents
		do       func(*Book)
		want     *changes
	}{
		"what is stored already is not written again": {
			contents: stored,
			do:       func(b *Book) { b.See(ready, never) },
		},
		"a pod that is not Ready any more is a loss": {
			contents: stored,
			do:       func(b *Book) { b.See(broken, never) },
			want:     &changes{Changed: map[string]timeline.LastSeen{"a": {Name: "shop/a"}}, Lost: true},
		},
		"while a recovery runs a pod stays what it was before": {
			contents: stored,
			do:       func(b *Book) { b.See(broken, always) },
		},
		"a pod that the shutdown left Failed stays what it was before": {
			contents: stored,
			do: func(b *Book) {
				b.See(timeline.Pod{Key: "a", Name: "shop/a", Finished: true, Restarts: true}, always)
			},
		},
		"a pod that ended as its restart policy allows is over, also while a recovery runs": {
			contents: stored,
			do:       func(b *Book) { b.See(timeline.Pod{Key: "a", Name: "shop/a", Finished: true}, always) },
			want:     &changes{Changed: map[string]timeline.LastSeen{"a": {Name: "shop/a", Ready: true, Finished: true}}, Lost: true},
		},
		"a pod that is still held is not released": {
			contents: stored,
			do:       func(b *Book) { b.See(broken, always); b.Release(always) },
		},
		"after the recovery it is what it is": {
			contents: stored,
			do:       func(b *Book) { b.See(broken, always); b.Release(never) },
			want:     &changes{Changed: map[string]timeline.LastSeen{"a": {Name: "shop/a"}}, Lost: true},
		},
		"a pod that came back is not held any more": {
			contents: stored,
			do:       func(b *Book) { b.See(broken, always); b.See(ready, always); b.Release(never) },
		},
		"a pod that is missing in a list is gone, also when it is held": {
			contents: stored,
			do:       func(b *Book) { b.See(broken, always); b.List(nil, always); b.Release(never) },
			want:     &changes{Changed: map[string]timeline.LastSeen{}, Gone: []string{"a", "b"}},
		},
		"the first list is written though it is empty": {
			contents: Contents{Pods: map[string]timeline.LastSeen{}},
			do:       func(b *Book) { b.List(nil, never) },
			want:     &changes{Changed: map[string]timeline.LastSeen{}},
		},
		"the first list is written": {
			contents: Contents{Pods: map[string]timeline.LastSeen{}},
			do:       func(b *Book) { b.List(pods(ready), never) },
			want:     &changes{Changed: map[string]timeline.LastSeen{"a": {Name: "shop/a", Ready: true}}},
		},
		"a new pod is written once": {
			contents: stored,
			do: func(b *Book) {
				b.See(timeline.Pod{Key: "c", Name: "shop/c"}, never)
				b.Stored()
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			book := NewBook(tc.contents)
			tc.do(book)
			if got := book.Dirty(); got != (tc.want != nil) {
				t.Fatalf("Dirty() = %v, want %v", got, tc.want != nil)
			}
			if tc.want == nil {
				return
			}
			var got changes
			got.Changed, got.Gone, got.Lost = book.Changes()
			slices.Sort(got.Gone)
			if diff := cmp.Diff(*tc.want, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			book.Stored()
			if book.Dirty() {
				t.Error("Dirty() after the changes were stored")
			}
		})
	}
}
