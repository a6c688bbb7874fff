package timeline

import (
	"maps"
	"slices"
	"time"

	"rekindle.edge/api/v1alpha1"
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

// InitStarted is the start of PID 1.
type InitStarted struct{ At time.Duration }

func (e InitStarted) apply(t *Tracker) bool { return first(&t.state.Edges.Init, e.At) }

// KubeletStarted is the start of a kubelet process; the first of a boot counts.
type KubeletStarted struct{ At time.Duration }

func (e KubeletStarted) apply(t *Tracker) bool { return first(&t.state.Edges.Kubelet, e.At) }

// KubeletHealthy is the first answer of kubelet's health endpoint.
type KubeletHealthy struct {
	At time.Duration
	// Late: it answered the first time it was asked. Since when, nobody saw.
	Late bool
}

func (e KubeletHealthy) apply(t *Tracker) bool {
	if t.state.KubeletUp {
		return false
	}
	t.state.KubeletUp = true
	if !e.Late {
		first(&t.state.Edges.KubeletHealthy, e.At)
	}
	return true
}

// NodeServed is the moment when kubelet was first given its Node in this boot.
type NodeServed struct{ At time.Duration }

func (e NodeServed) apply(t *Tracker) bool { return first(&t.state.Edges.NodeServed, e.At) }

// PodsServed is the moment when kubelet was first given the list of its pods in this boot.
type PodsServed struct{ At time.Duration }

func (e PodsServed) apply(t *Tracker) bool { return first(&t.state.Edges.PodsServed, e.At) }

// SandboxReady is a pod sandbox of this boot that is ready.
type SandboxReady struct {
	ID string
	At time.Duration
	// Listed: it was found ready in a list, and At is a guess.
	Listed bool
}

func (e SandboxReady) apply(t *Tracker) bool {
	edge, estimated := t.state.Edges.FirstSandbox, t.state.SandboxEstimated
	switch {
	case edge == nil:
	case e.Listed && estimated == "":
		return false // a guess is no better than what was seen
	case !e.Listed && estimated == e.ID:
	case *edge <= e.At:
		return false
	}
	t.state.Edges.FirstSandbox = &e.At
	t.state.SandboxEstimated = ""
	if e.Listed {
		t.state.SandboxEstimated = e.ID
	}
	return true
}

// ContainerRunning is a container that was seen running in this boot.
type ContainerRunning struct{ ID string }

func (e ContainerRunning) apply(t *Tracker) bool {
	if t.running[e.ID] {
		return false
	}
	t.running[e.ID] = true
	changed := false
	for key := range t.claims {
		changed = t.confirm(key) || changed
	}
	return changed
}

// Answered says whether a request to the API server was answered.
type Answered struct {
	At     time.Duration
	Online bool
}

func (e Answered) apply(t *Tracker) bool {
	changed := e.Online != t.state.Online
	t.state.Online = e.Online
	if e.Online && t.state.FirstAnswer == nil {
		t.state.FirstAnswer = &e.At
		changed = true
	}
	return changed
}

// TargetSet is a new target of the node.
type TargetSet struct{ Seconds int32 }

func (e TargetSet) apply(t *Tracker) bool {
	changed := t.state.TargetSeconds != e.Seconds
	t.state.TargetSeconds = e.Seconds
	return changed
}

// PodsListed is the complete list of the node's pods.
type PodsListed struct {
	At   time.Duration
	Pods []PodSeen
}

func (e PodsListed) apply(t *Tracker) bool {
	changed := !t.state.Listed
	listed := map[string]bool{}
	for _, seen := range e.Pods {
		listed[seen.Pod.Key] = true
		changed = seen.apply(t) || changed
	}
	for key := range t.state.Expected {
		if !listed[key] {
			changed = t.drop(key) || changed
		}
	}
	t.state.Listed = true
	return changed
}

// PodSeen is one pod as the API server shows it.
type PodSeen struct {
	At  time.Duration
	Pod Pod
	// ReadyBy is the latest time at which the pod can have become Ready by its own
	// status. Zero: not known.
	ReadyBy time.Duration
}

func (e PodSeen) apply(t *Tracker) bool {
	expected, ok := t.state.Expected[e.Pod.Key]
	if !ok {
		return false
	}
	if e.Pod.Deleting || (e.Pod.Finished && !e.Pod.Restarts) {
		return t.drop(e.Pod.Key)
	}
	if expected.ReadyAt != nil {
		return false
	}
	reason := e.Pod.Reason
	ready := e.Pod.Ready && !e.Pod.Finished
	last, claimed := t.claims[e.Pod.Key]
	if !claimed || last.ready != ready || !slices.Equal(last.containers, e.Pod.Containers) {
		t.claims[e.Pod.Key] = claim{ready: ready, at: t.readyTime(e), containers: e.Pod.Containers}
	}
	if ready {
		reason = reasonNotStarted
		if t.confirm(e.Pod.Key) {
			return true
		}
	}
	changed := expected.Reason != reason
	expected.Reason = reason
	t.state.Expected[e.Pod.Key] = expected
	return changed
}

// KubeletSaw is one pod as kubelet itself sees it. It counts like a status that the API
// server shows, but says nothing of whether the API server still has the pod.
type KubeletSaw struct{ PodSeen }

// PodGone is a pod that was deleted.
type PodGone struct{ Key string }

func (e PodGone) apply(t *Tracker) bool { return t.drop(e.Key) }

// PodsHeld are the pods that are held back on purpose at a time.
type PodsHeld struct{ Pods []Held }

func (e PodsHeld) apply(t *Tracker) bool {
	changed := false
	for _, pod := range e.Pods {
		if slices.ContainsFunc(t.state.Held, func(held Held) bool { return held.Name == pod.Name }) {
			continue
		}
		t.drop(pod.Key)
		t.state.Held = append(t.state.Held, pod)
		changed = true
	}
	return changed
}

// readyTime is the arrival of a Ready status, or the time that the status itself gives if
// that is earlier. A time from before kubelet's start is of the boot before.
func (t *Tracker) readyTime(e PodSeen) time.Duration {
	if e.ReadyBy <= 0 || e.ReadyBy >= e.At || t.state.Edges.Kubelet == nil || e.ReadyBy < *t.state.Edges.Kubelet {
		return e.At
	}
	return e.ReadyBy
}

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

// first sets an edge that is not set yet.
func first(edge **time.Duration, at time.Duration) bool {
	if *edge != nil {
		return false
	}
	*edge = &at
	return true
}

// incompleteReason says why a record that is closed now is incomplete.
func (s State) incompleteReason() string {
	if !s.Listed {
		return v1alpha1.IncompleteNoPodList
	}
	return v1alpha1.IncompletePodsNotReady
}
