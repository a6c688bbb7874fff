package mirror

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

// filled is a Service of about so many bytes.
func filled(name, version string, bytes int) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"shop","uid":"u-%s","resourceVersion":%q,"annotations":{"x":%q}}}`, name, name, version, strings.Repeat("x", bytes))
}

func TestAnEntryOfTheWarmListThatIsTooLargeIsLeftOut(t *testing.T) {
	const most = 2000
	cases := map[string]struct {
		script func(*script)
		others int // bytes that another entry has
		want   []string
		last   string
		large  bool
	}{
		"one that fits": {
			script: func(s *script) { s.on("list", list("5", "", filled("a", "3", 500), filled("b", "4", 500))) },
			want:   []string{"a@3", "b@4"}, last: "watch 5",
		},
		"a list": {
			script: func(s *script) { s.on("list", list("5", "", filled("a", "3", 1000), filled("b", "4", 1000))) },
			last:   "list", large: true,
		},
		"its second page, and no third is read": {
			script: func(s *script) {
				s.on("list", list("5", "two", filled("a", "3", 1000)))
				s.on("list two", list("5", "three", filled("b", "4", 1000)))
			},
			last: "list two", large: true,
		},
		"a list beside another entry": {
			script: func(s *script) { s.on("list", list("5", "", filled("a", "3", 1000))) },
			others: 1500, last: "list", large: true,
		},
		"one that grows by an object": {
			script: func(s *script) {
				s.on("list", list("5", "", filled("a", "3", 1000)))
				s.on("watch 5", events(true, event("ADDED", filled("b", "6", 1000))))
			},
			last: "watch 5", large: true,
		},
		"one whose object grows": {
			script: func(s *script) {
				s.on("list", list("5", "", filled("a", "3", 1000)))
				s.on("watch 5", events(true, event("MODIFIED", filled("a", "6", 2500))))
			},
			last: "watch 5", large: true,
		},
		"one that changes much and stays as it is": {
			script: func(s *script) {
				s.on("list", list("5", "", filled("a", "3", 1000)))
				s.on("watch 5", events(true, event("MODIFIED", filled("a", "6", 1000)), event("MODIFIED", filled("a", "7", 1000)), event("DELETED", filled("a", "8", 1000)), event("ADDED", filled("b", "9", 1000))))
			},
			want: []string{"b@9"}, last: "watch 5",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &script{}
			tc.script(s)
			var m *Mirror
			objects := follow(t, s, tc.want, tc.last, func(f *follower) {
				f.state.warm, f.budget = true, &budget{most: most, used: map[*follower]int{nil: tc.others}}
				m = f.m
			})
			told := func() bool {
				for _, f := range m.Report().Findings {
					if f.Reason == v1alpha1.ReasonWarmListTooLarge {
						return f.Object == "services" && f.Message != ""
					}
				}
				return false
			}
			for deadline := time.Now().Add(5 * time.Second); told() != tc.large && time.Now().Before(deadline); {
				time.Sleep(time.Millisecond)
			}
			if told() != tc.large {
				t.Errorf("told: %v, want %v", told(), tc.large)
			}
			if known := objects.Known(snapshot.Scope{Resource: services}); known == tc.large {
				t.Errorf("the collection counts as known: %v", known)
			}
		})
	}
}

func TestPagesOfLargeObjectsAreSmaller(t *testing.T) {
	s := &script{}
	var limits []string
	page := func(next, name string, bytes int) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) {
			limits = append(limits, r.URL.Query().Get("limit"))
			list("5", next, filled(name, "3", bytes))(w, r)
		}
	}
	s.on("list", page("two", "a", pageBytes))
	s.on("list two", page("three", "b", 10))
	s.on("list three", page("four", "c", pageBytes))
	s.on("list four", page("", "d", 10))
	follow(t, s, []string{"a@3", "b@3", "c@3", "d@3"}, "watch 5")
	if diff := cmp.Diff([]string{"500", "125", "125", "31"}, limits); diff != "" {
		t.Error(diff)
	}
}
