// Package timeline turns timed events of one boot into a recovery record. It is a pure
// state machine: no clocks, no I/O; every event carries its own time, counted from kernel
// start (CLOCK_BOOTTIME). Sources of events are in the package source.
//
// A record is open from the start of a boot until every expected pod is Ready, or its
// deadline has passed, or the node restarts. Expected are the pods that were Ready when
// they were last seen before the restart. A pod that is deleted, or whose deletion begins,
// while the record is open is not expected any more: nobody wants it back. So is one that
// ends as its restart policy allows. One that is over although it restarts always is
// expected, also if it was over in the first list of the boot: an orderly shutdown of
// kubelet leaves pods Failed that were Ready. A pod that is new in this boot is not
// expected. One that is held back on purpose in this boot is counted apart, also when it comes
// up later: how long that took says nothing of the node. With no pod expected the node is back when kubelet serves its health endpoint.
//
// A pod counts as Ready when its Ready condition is True and every container of its status
// was seen running in this boot: the status that is served first still says Ready, of the
// containers of the boot before.
package timeline

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"rekindle.edge/api/v1alpha1"
)

// LastSeen is what is remembered of a pod across a restart.
type LastSeen struct {
	// Name is namespace/name.
	Name string `json:"name"`
	// Ready says whether it was Ready when last seen alive.
	Ready bool `json:"ready,omitempty"`
	// Finished and Deleting pods are not expected back.
	Finished bool `json:"finished,omitempty"`
	Deleting bool `json:"deleting,omitempty"`
}

// Expected is a pod that a recovery waits for.
type Expected struct {
	Name string `json:"name"`
	// ReadyAt is when it became Ready. Nil: it is not.
	ReadyAt *time.Duration `json:"readyAt,omitempty"`
	// Reason why it is not.
	Reason string `json:"reason,omitempty"`
	// Steps of its start. Nil: nobody saw them.
	Steps *Steps `json:"steps,omitempty"`
}

// Held is a pod that is held back on purpose.
type Held struct {
	Key string `json:"key"`
	// Name is namespace/name.
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Edges are the ends of the phases, as time since kernel start. Nil: not observed.
type Edges struct {
	Init           *time.Duration `json:"init,omitempty"`
	Kubelet        *time.Duration `json:"kubelet,omitempty"`
	KubeletHealthy *time.Duration `json:"kubeletHealthy,omitempty"`
	NodeServed     *time.Duration `json:"nodeServed,omitempty"`
	PodsServed     *time.Duration `json:"podsServed,omitempty"`
	FirstSandbox   *time.Duration `json:"firstSandbox,omitempty"`
}

// State is an open record. It is stored as it stands at each edge, so that an agent that
// is killed goes on with it.
type State struct {
	BootID      string               `json:"bootID"`
	PreviousEnd v1alpha1.PreviousEnd `json:"previousEnd"`
	// LastSign is the last sign of life of the boot before, by the wall clock; zero: none.
	LastSign time.Time `json:"lastSign,omitzero"`
	// TargetSeconds is the node's target, in seconds.
	TargetSeconds  int32               `json:"targetSeconds"`
	Edges          Edges               `json:"edges"`
	Expected       map[string]Expected `json:"expected,omitempty"`
	NotReadyBefore int32               `json:"notReadyBefore,omitempty"`
	// Held are pods that were held back in this boot, in the order in which they were.
	Held []Held `json:"held,omitempty"`
	// Stages of the start-up order that were opened.
	Stages []v1alpha1.StageRecovery `json:"stages,omitempty"`
	// Listed says whether the API server has given the node's pods in this boot.
	Listed bool `json:"listed,omitempty"`
	// KubeletUp says whether kubelet has answered, also when nobody saw since when.
	KubeletUp bool `json:"kubeletUp,omitempty"`
	// FirstAnswer is when the API server first answered in this boot.
	FirstAnswer *time.Duration `json:"firstAnswer,omitempty"`
	// Online says whether it answered when last asked.
	Online bool `json:"online,omitempty"`
	// SandboxEstimated names the sandbox behind FirstSandbox when its time was read from a
	// list: the time of its event, should it come, is better.
	SandboxEstimated string `json:"sandboxEstimated,omitempty"`
}

// Begin opens the record of a boot, with the pods that were last seen before it.
func Begin(bootID string, end v1alpha1.PreviousEnd, lastSign time.Time, targetSeconds int32, pods map[string]LastSeen) State {
	state := State{
		BootID: bootID, PreviousEnd: end, LastSign: lastSign, TargetSeconds: targetSeconds,
		Expected: map[string]Expected{},
	}
	for key, pod := range pods {
		switch {
		case pod.Finished || pod.Deleting:
		case pod.Ready:
			state.Expected[key] = Expected{Name: pod.Name, Reason: v1alpha1.IncompleteNoPodList}
		default:
			state.NotReadyBefore++
		}
	}
	return state
}

// minDeadline is the shortest time after which a record is closed.
const minDeadline = 10 * time.Minute

// Deadline is when the record is closed at the latest, as time since kernel start.
func (s State) Deadline() time.Duration {
	return max(minDeadline, 5*time.Duration(s.TargetSeconds)*time.Second)
}

// readyEdges are the times of the first and last expected pod that became Ready.
func (s State) readyEdges() (first, last *time.Duration) {
	for _, pod := range s.Expected {
		if pod.ReadyAt == nil {
			continue
		}
		if first == nil || *pod.ReadyAt < *first {
			first = pod.ReadyAt
		}
		if last == nil || *pod.ReadyAt > *last {
			last = pod.ReadyAt
		}
	}
	return first, last
}

func (s State) readyCount() int32 {
	var ready int32
	for _, pod := range s.Expected {
		if pod.ReadyAt != nil {
			ready++
		}
	}
	return ready
}

// slowest are the pods that took longest, those that are not Ready first.
func (s State) slowest(limit int) []Expected {
	pods := slices.SortedFunc(maps.Values(s.Expected), func(a, b Expected) int {
		switch {
		case a.ReadyAt == nil && b.ReadyAt != nil:
			return -1
		case a.ReadyAt != nil && b.ReadyAt == nil:
			return 1
		case a.ReadyAt != nil && *a.ReadyAt != *b.ReadyAt:
			return cmp.Compare(*b.ReadyAt, *a.ReadyAt)
		}
		return cmp.Compare(a.Name, b.Name)
	})
	// A name may stand for two keys for a moment (deleted and re-created); the list of the
	// status allows it once.
	seen := map[string]bool{}
	pods = slices.DeleteFunc(pods, func(pod Expected) bool {
		twice := seen[pod.Name]
		seen[pod.Name] = true
		return twice
	})
	return pods[:min(limit, len(pods))]
}
