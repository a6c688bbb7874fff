package mirror

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"rekindle.edge/agent/snapshot"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// podsNamed are pods whose UIDs are their names.
func podsNamed(names ...string) []snapshot.Object {
	var all []snapshot.Object
	for _, name := range names {
		all = append(all, snapshot.Object{Namespace: "shop", Name: name, UID: types.UID(name)})
	}
	return all
}

func uids(names ...string) map[types.UID]bool {
	set := map[types.UID]bool{}
	for _, name := range names {
		set[types.UID(name)] = true
	}
	return set
}

func TestBelieve(t *testing.T) {
	five := podsNamed("a", "b", "c", "d", "e")
	doubted := func(age time.Duration, names ...string) *doubt { return &doubt{noon.Add(-age), uids(names...)} }
	cases := map[string]struct {
		evidence evidence
		held     []string
		doubt    *doubt
		again    time.Duration
	}{
		"a list that has all pods is believed": {evidence: evidence{stored: five, listed: five, sameNode: true}},
		"so is one with more":                  {evidence: evidence{stored: podsNamed("a"), listed: five, sameNode: true}},
		"a node without pods believes all":     {evidence: evidence{listed: five}},
		"half may be gone":                     {evidence: evidence{stored: podsNamed("a", "b", "c", "d", "e", "f"), listed: podsNamed("a", "b", "c"), sameNode: true}},
		"two may be gone, and be all":          {evidence: evidence{stored: podsNamed("a", "b"), sameNode: true}},
		"more than half are looked at again": {
			evidence: evidence{stored: five, listed: podsNamed("a", "b"), sameNode: true},
			held:     []string{"c", "d", "e"}, doubt: doubted(0, "c", "d", "e"), again: 10 * time.Second,
		},
		"an empty list is looked at again": {
			evidence: evidence{stored: podsNamed("a", "b", "c"), sameNode: true},
			held:     []string{"a", "b", "c"}, doubt: doubted(0, "a", "b", "c"), again: 10 * time.Second,
		},
		"a second list too soon counts for nothing": {
			evidence: evidence{stored: podsNamed("a", "b", "c"), sameNode: true, before: doubted(4*time.Second, "a", "b", "c")},
			held:     []string{"a", "b", "c"}, doubt: doubted(4*time.Second, "a", "b", "c"), again: 6 * time.Second,
		},
		"a second list that agrees is believed": {
			evidence: evidence{stored: podsNamed("a", "b", "c"), sameNode: true, before: doubted(10*time.Second, "a", "b", "c")},
		},
		"so is one that lacks another as well": {
			evidence: evidence{stored: podsNamed("a", "b", "c", "d"), sameNode: true, before: doubted(10*time.Second, "a", "b", "c")},
		},
		"a second list that has one of them again begins anew": {
			evidence: evidence{stored: five, listed: podsNamed("a"), sameNode: true, before: doubted(20*time.Second, "a", "b", "c", "d", "e")},
			held:     []string{"b", "c", "d", "e"}, doubt: doubted(0, "b", "c", "d", "e"), again: 10 * time.Second,
		},
		"a second list that has most again is believed": {
			evidence: evidence{stored: five, listed: podsNamed("a", "b", "c", "d"), sameNode: true, before: doubted(10*time.Second, "a", "b", "c", "d", "e")},
		},
		"a clock that went back begins anew": {
			evidence: evidence{stored: podsNamed("a", "b", "c"), sameNode: true, before: doubted(-time.Hour, "a", "b", "c")},
			held:     []string{"a", "b", "c"}, doubt: doubted(0, "a", "b", "c"), again: 10 * time.Second,
		},
		"another Node is never believed, also a second time": {
			evidence: evidence{stored: podsNamed("a", "b", "c"), before: doubted(time.Minute, "a", "b", "c")},
			held:     []string{"a", "b", "c"}, doubt: doubted(0, "a", "b", "c"), again: 10 * time.Second,
		},
		"after a restore not even one is given up": {
			evidence: evidence{stored: podsNamed("a", "b"), listed: podsNamed("a"), sameNode: true, brokenAt: noon.Add(-time.Minute)},
			held:     []string{"b"}, doubt: doubted(0, "b"), again: time.Minute,
		},
		"an hour after a restore lists count again": {
			evidence: evidence{stored: podsNamed("a", "b"), listed: podsNamed("a"), sameNode: true, brokenAt: noon.Add(-61 * time.Minute)},
		},
		"a clock far off the restore's does not hold for ever": {
			evidence: evidence{stored: podsNamed("a", "b"), listed: podsNamed("a"), sameNode: true, brokenAt: noon.Add(10 * time.Hour)},
		},
		"a pod whose name another one has now is gone": {
			evidence: evidence{stored: podsNamed("a", "b", "c"), listed: []snapshot.Object{{Namespace: "shop", Name: "a", UID: "new"}}, sameNode: true},
			held:     []string{"b", "c"}, doubt: doubted(0, "a", "b", "c"), again: 10 * time.Second,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.evidence.now = noon
			got := believe(tc.evidence)
			var held []string
			for _, pod := range got.held {
				held = append(held, pod.Name)
			}
			slices.Sort(held)
			if diff := cmp.Diff(tc.held, held); diff != "" {
				t.Errorf("held (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.doubt, got.doubt, cmp.AllowUnexported(doubt{})); diff != "" || got.again != tc.again {
				t.Errorf("again in %s, want %s; doubt (-want +got):\n%s", got.again, tc.again, diff)
			}
			if (got.why == "") != (tc.doubt == nil) {
				t.Errorf("reason %q", got.why)
			}
		})
	}
}

func TestSighting(t *testing.T) {
	known := sighting{nodeUID: "n1", nodeVersion: 90, version: 100, serviceUID: "s1"}
	cases := map[string]struct {
		known, seen  sighting
		same, broken bool
	}{
		"first contact":                      {seen: sighting{nodeUID: "n1", nodeVersion: 5, version: 9}, same: true},
		"the known Node":                     {known: known, seen: sighting{nodeUID: "n1", nodeVersion: 95, version: 120}, same: true},
		"a Node that was made anew":          {known: known, seen: sighting{nodeUID: "n2", nodeVersion: 110, version: 120, serviceUID: "s1"}, same: true},
		"a Node that was deleted":            {known: known, seen: sighting{version: 120, serviceUID: "s1"}, same: true},
		"another cluster":                    {known: known, seen: sighting{nodeUID: "n2", nodeVersion: 95, version: 120, serviceUID: "s2"}},
		"an empty cluster":                   {known: known, seen: sighting{version: 120}},
		"two absent Nodes are not the same":  {known: sighting{serviceUID: "s1"}, seen: sighting{version: 1}, same: false},
		"an earlier state":                   {known: known, seen: sighting{nodeUID: "n1", nodeVersion: 40, version: 50}, same: true, broken: true},
		"an earlier state that has gone on":  {known: known, seen: sighting{nodeUID: "n1", nodeVersion: 40, version: 150}, same: true, broken: true},
		"a new Node at an earlier state":     {known: known, seen: sighting{nodeUID: "n2", nodeVersion: 60, version: 70, serviceUID: "s1"}, same: true, broken: true},
		"nothing has happened in the server": {known: known, seen: sighting{nodeUID: "n1", nodeVersion: 90, version: 100}, same: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := sameCluster(tc.known, tc.seen); got != tc.same {
				t.Errorf("same cluster: %t", got)
			}
			if got := lineBroken(tc.known, tc.seen); got != tc.broken && tc.same {
				t.Errorf("line broken: %t", got)
			}
		})
	}
}
