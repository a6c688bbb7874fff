package timeline

import (
	"slices"
	"time"
)

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
