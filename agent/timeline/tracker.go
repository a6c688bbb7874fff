package timeline

import (
	"maps"
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
	// ready are expected pods whose status says Ready, with the time when it first did.
	ready map[string]claim
}

// claim is a Ready status whose containers have yet to be seen running.
type claim struct {
	at         time.Duration
	containers []string
}

// NewTracker goes on with a record.
func NewTracker(state State) *Tracker {
	state.Expected = maps.Clone(state.Expected)
	return &Tracker{state: state, running: map[string]bool{}, ready: map[string]claim{}}
}

// State is the record as it stands.
func (t *Tracker) State() State {
	state := t.state
	state.Expected = maps.Clone(state.Expected)
	return state
}

// Expects says whether the record waits for a pod.
func (t *Tracker) Expects(key string) bool {
	_, expected := t.state.Expected[key]
	return expected
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
	for key := range t.ready {
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
		// What is over in the first list of a boot was over before kubelet got hold of it.
		if !t.state.Listed && seen.Pod.Finished {
			changed = t.drop(seen.Pod.Key) || changed
			continue
		}
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
	if e.Pod.Ready && !e.Pod.Finished {
		reason = reasonNotStarted
		if _, claimed := t.ready[e.Pod.Key]; !claimed || !t.sameContainers(e.Pod) {
			t.ready[e.Pod.Key] = claim{at: t.readyTime(e), containers: e.Pod.Containers}
		}
		if t.confirm(e.Pod.Key) {
			return true
		}
	} else {
		delete(t.ready, e.Pod.Key)
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

// readyTime is the arrival of a Ready status, or the time that the status itself gives if
// that is earlier. A time from before kubelet's start is of the boot before.
func (t *Tracker) readyTime(e PodSeen) time.Duration {
	if e.ReadyBy <= 0 || e.ReadyBy >= e.At || t.state.Edges.Kubelet == nil || e.ReadyBy < *t.state.Edges.Kubelet {
		return e.At
	}
	return e.ReadyBy
}

func (t *Tracker) sameContainers(pod Pod) bool {
	claimed := t.ready[pod.Key].containers
	if len(claimed) != len(pod.Containers) {
		return false
	}
	for i := range claimed {
		if claimed[i] != pod.Containers[i] {
			return false
		}
	}
	return true
}

// confirm takes a pod's Ready status for true once all its containers were seen running.
func (t *Tracker) confirm(key string) bool {
	claim := t.ready[key]
	if len(claim.containers) == 0 {
		return false
	}
	for _, id := range claim.containers {
		if !t.running[id] {
			return false
		}
	}
	delete(t.ready, key)
	pod := t.state.Expected[key]
	pod.ReadyAt, pod.Reason = &claim.at, ""
	t.state.Expected[key] = pod
	return true
}

func (t *Tracker) drop(key string) bool {
	if !t.Expects(key) {
		return false
	}
	delete(t.state.Expected, key)
	delete(t.ready, key)
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
