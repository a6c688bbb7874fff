package timeline

import (
	"maps"
	"slices"
	"time"
)

// reasonNotStarted: the pod's status still speaks of the boot before.
const reasonNotStarted = "NotStarted"

// Tracker follows one boot. It is not safe for concurrent use.
type Tracker struct {
	state State
	// running are the ids of containers that were seen running in this boot. They are
	// not stored: whoever runs is listed again when the agent starts.
	running map[string]bool
	// claims are the last status of expected pods that are not Ready.
	claims map[string]claim
	// alive are expected pods whose containers were all seen running, and since when.
	alive map[string]time.Duration
}

// claim is what a status says, which is believed when its containers were seen running.
type claim struct {
	ready bool
	// at is when the status first said so of these containers.
	at         time.Duration
	containers []string
}

// settleTime is how long the containers of a pod may run without the pod being Ready until
// that is how it was last seen alive.
const settleTime = 5 * time.Second

// NewTracker goes on with a record.
func NewTracker(state State) *Tracker {
	state.Expected, state.Held = maps.Clone(state.Expected), slices.Clone(state.Held)
	return &Tracker{state: state, running: map[string]bool{}, claims: map[string]claim{}, alive: map[string]time.Duration{}}
}

// State is the record as it stands.
func (t *Tracker) State() State {
	state := t.state
	state.Expected, state.Held = maps.Clone(state.Expected), slices.Clone(state.Held)
	return state
}

// Remembers says whether a pod's readiness from before the restart still counts at a time:
// it is expected, and has not come up again, or a moment ago. A second restart must not
// forget the pods that the first one has not given back yet.
func (t *Tracker) Remembers(key string, now time.Duration) bool {
	pod, expected := t.state.Expected[key]
	if !expected || pod.ReadyAt != nil {
		return false
	}
	if !t.allRunning(t.claims[key].containers) {
		return true
	}
	since, seen := t.alive[key]
	if !seen {
		since = now
		t.alive[key] = now
	}
	return now-since < settleTime
}

// Complete says whether every expected pod is Ready.
func (t *Tracker) Complete() bool {
	if len(t.state.Expected) == 0 {
		return t.state.KubeletUp
	}
	return int(t.state.readyCount()) == len(t.state.Expected)
}

// Observe takes an event and says whether it changed the record.
func (t *Tracker) Observe(event Event) bool { return event.apply(t) }

// Event is something that happened at a known time of this boot.
type Event interface{ apply(*Tracker) bool }

// confirm takes a pod's Ready status for true once all its containers were seen running.
func (t *Tracker) confirm(key string) bool {
	claim := t.claims[key]
	if !claim.ready || !t.allRunning(claim.containers) {
		return false
	}
	delete(t.claims, key)
	pod := t.state.Expected[key]
	pod.ReadyAt, pod.Reason = &claim.at, ""
	t.state.Expected[key] = pod
	return true
}

// allRunning says whether there are containers, and all of them were seen running.
func (t *Tracker) allRunning(containers []string) bool {
	for _, id := range containers {
		if !t.running[id] {
			return false
		}
	}
	return len(containers) > 0
}

func (t *Tracker) drop(key string) bool {
	if _, expected := t.state.Expected[key]; !expected {
		return false
	}
	delete(t.state.Expected, key)
	delete(t.claims, key)
	return true
}
