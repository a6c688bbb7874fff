package torture

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"rekindle.edge/agent/snapshot"
	"rekindle.edge/agent/snapshot/durable"
)

// node is a store under torture, and what is known of it from outside.
type node struct {
	dir string
	// number of the last step in now, and every content that there ever was.
	number  int
	now     model
	history map[string]bool
}

func newNode(dir string) *node {
	return &node{dir: dir, now: model{}, history: map[string]bool{"": true}}
}

func raceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// longestOpen is more than a start may take whose disk hangs, on a loaded machine; an end to it must
// come.
const longestOpen = time.Minute

// open opens the store as the agent does at a start.
func (n *node) open(t *testing.T) *snapshot.Store {
	t.Helper()
	checker := durable.SelfChecker()
	if raceDetector() {
		checker.MemoryBytes = math.MaxUint64 // its own memory is more than any limit
	}
	begin := time.Now()
	store, err := snapshot.Open(stateDir(n.dir), logr.Discard(), snapshot.WithChecker(checker), snapshot.WithWitnesses(kubeletDir(n.dir), nil))
	if err != nil {
		t.Fatalf("the store does not open: %v", err)
	}
	if took := time.Since(begin); took > longestOpen {
		t.Errorf("opening took %s", took)
	}
	return store
}

// possible are the contents that a run may have left: that of the last durable step, and
// of every later one that began.
func (n *node) possible(seed uint64, r run) map[string]int {
	found := map[string]int{}
	m := n.now
	if r.durable <= n.number {
		found[m.String()] = n.number
	}
	for number := n.number + 1; number <= r.begun; number++ {
		m = next(seed, number, m).model
		n.history[m.String()] = true
		if number >= r.durable {
			found[m.String()] = number
		}
	}
	return found
}

// living are the pods that were there at the last durable step and at all later ones:
// those whose data must never be lost.
func (n *node) living(seed uint64, r run) map[string]bool {
	m := n.now
	living := m.pods()
	for number := n.number + 1; number <= r.begun; number++ {
		m = next(seed, number, m).model
		pods := m.pods()
		if number <= r.durable {
			living = pods
			continue
		}
		for uid := range living {
			if !pods[uid] {
				delete(living, uid)
			}
		}
	}
	return living
}

// outcome is how a store came back.
type outcome string

const (
	// exact: the content before or after the step that was interrupted.
	exact outcome = "exact"
	// older: an earlier content that lacks no pod kubelet knows.
	older outcome = "older"
	// held: the list is not served, and there is a reason.
	held outcome = "held"
)

// judge opens the store and proves that what it serves may be served.
func (n *node) judge(t *testing.T, seed uint64, r run, what string) (outcome, int) {
	t.Helper()
	possible, living := n.possible(seed, r), n.living(seed, r)
	store := n.open(t)
	defer store.Close()
	o := store.Objects()
	got := read(o)
	number, isExact := possible[got.String()]
	_, known := got["known pods"]
	trusted, reason := o.Trusted()
	switch {
	case trusted != (reason == ""):
		t.Errorf("%s: trusted %v, reason %q", what, trusted, reason)
	case !trusted && !known && isExact:
		return exact, number // before the first list
	case !trusted:
		return held, 0
	}
	if !known {
		t.Errorf("%s: a list is served that nobody knows", what)
	}
	pods := got.pods()
	for _, uid := range folders(t, n.dir) {
		if living[uid] && !pods[uid] {
			t.Errorf("%s: pod %s would lose its data", what, uid)
		}
	}
	switch {
	case isExact:
		return exact, number
	case n.history[got.String()]:
		return older, 0
	}
	t.Errorf("%s: the content is none that ever was, between step %d (durable) and %d (begun):\n%s", what, r.durable, r.begun, got)
	return older, 0
}

// keep goes on from a content that was exact.
func (n *node) keep(t *testing.T, seed uint64, number int) {
	t.Helper()
	for ; n.number < number; n.number++ {
		n.now = next(seed, n.number+1, n.now).model
	}
	// Kubelet removes what the list lacks.
	pods := n.now.pods()
	for _, uid := range folders(t, n.dir) {
		if !pods[uid] {
			must(t, os.RemoveAll(filepath.Join(kubeletDir(n.dir), "pods", uid)))
		}
	}
	for uid := range pods {
		must(t, os.MkdirAll(filepath.Join(kubeletDir(n.dir), "pods", uid), 0o700))
	}
}
