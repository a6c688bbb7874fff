package mirror

import (
	"errors"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rekindle.edge/agent/snapshot"
)

func TestSettled(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))
	cases := map[string]struct {
		resource schema.GroupVersionResource
		raw      string // empty: absent
		err      error
		want     bool
	}{
		"a claim that is bound":                                     {resource: claims, raw: `{"status":{"phase":"Bound"}}`, want: true},
		"a claim that is not":                                       {resource: claims, raw: `{"status":{"phase":"Pending"}}`},
		"a volume that names its claim":                             {resource: volumes, raw: `{"spec":{"claimRef":{"uid":"u"}},"status":{"phase":"Bound"}}`, want: true},
		"a volume made for a claim's name, before it knows the UID": {resource: volumes, raw: `{"spec":{"claimRef":{"name":"c"}},"status":{"phase":"Available"}}`},
		"a volume that is bound and does not know it yet":           {resource: volumes, raw: `{"spec":{"claimRef":{"name":"c"}},"status":{"phase":"Bound"}}`},
		"a volume that is not there":                                {resource: volumes},
		"a volume that is attached":                                 {resource: attachments, raw: `{"status":{"attached":true}}`, want: true},
		"a volume that is being attached":                           {resource: attachments, raw: `{"status":{"attached":false}}`},
		"a service account":                                         {resource: accounts, raw: `{}`, want: true},
		"one that the node may not read":                            {resource: accounts, err: forbidden, want: true},
		"a volume that it may not read yet":                         {resource: volumes, err: forbidden},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := answer{scope: snapshot.Scope{Resource: tc.resource, Name: "x"}, found: tc.raw != "", object: snapshot.Object{Raw: []byte(tc.raw)}, err: tc.err}
			if got := settled(a); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

// TestWhatMovesIsReadWhenPodsChange: a pod that has become Ready had all that it waited for.
func TestWhatMovesIsReadWhenPodsChange(t *testing.T) {
	now := time.Now()
	moving, still, read := snapshot.Scope{Resource: volumes, Name: "moving"}, snapshot.Scope{Resource: volumes, Name: "still"}, snapshot.Scope{Resource: volumes, Name: "read"}
	g := &gets{
		changed: make(chan struct{}, 1), known: map[snapshot.Scope]bool{},
		due: map[snapshot.Scope]time.Time{
			moving: now.Add(unsettledEvery - 5*time.Second), still: now.Add(slowly), read: now.Add(unsettledEvery),
		},
		moving: map[snapshot.Scope]time.Time{moving: now.Add(-5 * time.Second), read: now},
	}
	g.want(objectSet{moving: true, still: true, read: true})
	if due := g.take(now); len(due) != 1 || due[0] != moving {
		t.Errorf("read now: %v, want the one that moves", due)
	}
	if due := g.take(now.Add(unsettledAtLeast)); len(due) != 2 {
		t.Errorf("read in a second: %v, want that which was just read as well", due)
	}
	g.want(objectSet{still: true})
	if len(g.moving) != 0 {
		t.Errorf("what nobody wants any more is kept: %v", g.moving)
	}
}

// TestWhatIsWrittenIsReadAgain: also when it was written while it was being read.
func TestWhatIsWrittenIsReadAgain(t *testing.T) {
	now := time.Now()
	own, claim := snapshot.Scope{Resource: csiNodes, Name: "edge-1"}, snapshot.Scope{Resource: claims, Namespace: "shop", Name: "data"}
	cases := map[string]struct {
		written snapshot.Scope
		want    []snapshot.Scope
	}{
		"the node's own CSINode":        {written: own, want: []snapshot.Scope{own}},
		"a CSINode that was made":       {written: snapshot.Scope{Resource: csiNodes}, want: []snapshot.Scope{own}},
		"what is not kept":              {written: snapshot.Scope{Resource: claims, Namespace: "shop", Name: "other"}},
		"one made in another namespace": {written: snapshot.Scope{Resource: claims, Namespace: "depot"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := &gets{
				changed: make(chan struct{}, 1), stale: map[snapshot.Scope]bool{},
				due: map[snapshot.Scope]time.Time{own: now.Add(slowly), claim: now.Add(slowly)},
			}
			g.written(tc.written)
			if got := g.take(now); !slices.Equal(got, tc.want) {
				t.Errorf("read now: %v, want %v", got, tc.want)
			}
			if len(g.stale) > 0 {
				t.Errorf("still to be read when it is being read: %v", g.stale)
			}
			g.written(tc.written)
			if got := len(g.stale); got != len(tc.want) {
				t.Errorf("%d to be read again after this read, want %d", got, len(tc.want))
			}
		})
	}
}
