package controllers

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"rekindle.edge/api/v1alpha1"
)

const (
	on  = v1alpha1.ConnectivityOnline
	off = v1alpha1.ConnectivityOffline
)

// sumUp is aggregate for a policy that selects just its followers.
func sumUp(policy *v1alpha1.EdgeRecoveryPolicy, followers ...follower) v1alpha1.EdgeRecoveryPolicyStatus {
	return aggregate(policy, nil, membership{matched: len(followers), followers: followers}, epoch)
}

func TestAggregateCounts(t *testing.T) {
	policy := makePolicy("p").obj()
	policy.Generation = 3
	behind := func(r *v1alpha1.NodeRecovery) { r.Generation = 2 }
	older := func(r *v1alpha1.NodeRecovery) { r.Spec.PolicyGeneration = 2 }

	cases := map[string]struct {
		followers []follower
		want      v1alpha1.NodeCounts
	}{
		"a node without a NodeRecovery is unknown": {
			[]follower{{node: makeNode("a")}}, v1alpha1.NodeCounts{Matched: 1, Unknown: 1}},
		"a node whose agent has taken over is applied, and unknown until it gives a verdict": {
			[]follower{follow(policy, "a", "")}, v1alpha1.NodeCounts{Matched: 1, Applied: 1, Unknown: 1}},
		"a node whose agent is behind its spec is not applied": {
			[]follower{follow(policy, "a", "", behind)}, v1alpha1.NodeCounts{Matched: 1, Unknown: 1}},
		"a node with an older generation of the policy is not applied": {
			[]follower{follow(policy, "a", "", older)}, v1alpha1.NodeCounts{Matched: 1, Unknown: 1}},
		"verdicts are counted": {
			[]follower{
				follow(policy, "a", "", saying(metav1.ConditionTrue)),
				follow(policy, "b", "", saying(metav1.ConditionTrue)),
				follow(policy, "c", "", saying(metav1.ConditionFalse)),
				follow(policy, "d", "", saying(metav1.ConditionUnknown)),
			}, v1alpha1.NodeCounts{Matched: 4, Applied: 4, RestartReady: 2, NotRestartReady: 1, Unknown: 1}},
		"a node out of reach is offline and in no verdict, whatever it said last": {
			[]follower{
				offline(follow(policy, "a", "", saying(metav1.ConditionFalse))),
				offline(follow(policy, "b", "", saying(metav1.ConditionTrue))),
				offline(follow(policy, "c", "", behind)),
			}, v1alpha1.NodeCounts{Matched: 3, Applied: 2, Offline: 3}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, sumUp(policy, tc.followers...).Nodes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAggregateConditions(t *testing.T) {
	policy := makePolicy("p").obj()
	type reasons struct{ accepted, applied, ready, met string }
	fine := follow(policy, "fine", "", saying(metav1.ConditionTrue), measuring(took(30_000, on)))
	behind := follow(policy, "behind", "", func(r *v1alpha1.NodeRecovery) { r.Generation++ })
	bad := follow(policy, "bad", "", saying(metav1.ConditionFalse), measuring(took(30_001, on)))

	cases := map[string]struct {
		problem   error
		matched   int
		followers []follower
		want      reasons
	}{
		"nothing is selected": {nil, 0, nil,
			reasons{"False/NoMatchingNodes", "Unknown/NoNodes", "Unknown/NoNodes", "Unknown/NoSamples"}},
		"every node follows a better policy": {nil, 2, nil,
			reasons{"False/Overridden", "Unknown/NoNodes", "Unknown/NoNodes", "Unknown/NoSamples"}},
		"some nodes follow a better policy": {nil, 2, []follower{fine},
			reasons{"True/PartlyOverridden", "True/AllNodesApplied", "True/AllNodesReady", "True/WithinTarget"}},
		"all is well, at the target to the millisecond": {nil, 1, []follower{fine},
			reasons{"True/Accepted", "True/AllNodesApplied", "True/AllNodesReady", "True/WithinTarget"}},
		"one node is behind and without a verdict": {nil, 2, []follower{fine, behind},
			reasons{"True/Accepted", "False/WaitingForAgents", "Unknown/NotEvaluated", "True/WithinTarget"}},
		"one would not come back, which weighs more than one without a verdict": {nil, 2, []follower{behind, bad},
			reasons{"True/Accepted", "False/WaitingForAgents", "False/NodesNotReady", "False/TargetMissed"}},
		"nothing waits for a node out of reach, and what it measured counts": {nil, 2, []follower{fine, offline(follow(policy, "lost", "", measuring(failed(off))))},
			reasons{"True/Accepted", "True/AllNodesApplied", "True/AllNodesReady", "False/TargetMissed"}},
		"all nodes are out of reach": {nil, 1, []follower{offline(follow(policy, "lost", ""))},
			reasons{"True/Accepted", "True/AllNodesApplied", "Unknown/NoNodes", "Unknown/NoSamples"}},
		"a selector cannot be parsed": {errors.New("spec.nodeSelector: bad"), 1, []follower{fine},
			reasons{"False/InvalidSelector", "False/InvalidSelector", "True/AllNodesReady", "True/WithinTarget"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status := aggregate(policy, tc.problem, membership{matched: tc.matched, followers: tc.followers}, epoch)
			text := func(kind string) string {
				c := meta.FindStatusCondition(status.Conditions, kind)
				if c == nil {
					return "not set"
				}
				if c.Message == "" || c.ObservedGeneration != policy.Generation {
					t.Errorf("%s has message %q and observedGeneration %d", kind, c.Message, c.ObservedGeneration)
				}
				return string(c.Status) + "/" + c.Reason
			}
			got := reasons{text("Accepted"), text("Applied"), text("RestartReady"), text("TargetMet")}
			if got != tc.want {
				t.Errorf("got  %+v\nwant %+v", got, tc.want)
			}
		})
	}
}

func TestAcceptedNamesThePoliciesThatWon(t *testing.T) {
	cases := map[string]struct {
		taken map[string]int
		want  string
	}{
		"one":                      {map[string]int{"a": 1}, "(a)"},
		"the one with most first":  {map[string]int{"a": 1, "b": 2, "c": 1}, "(b, a, c)"},
		"three, and that it is so": {map[string]int{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}, "(e, d, c, others)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, followers := range [][]follower{nil, {{}}} {
				if got := acceptedCondition(nil, membership{matched: 99, followers: followers, taken: tc.taken}).Message; !strings.Contains(got, tc.want) {
					t.Errorf("message = %q, want it to name %s", got, tc.want)
				}
			}
		})
	}
}

func TestAggregateTwiceChangesNothing(t *testing.T) {
	policy := makePolicy("p").obj()
	followers := []follower{follow(policy, "a", "x", saying(metav1.ConditionTrue), measuring(took(1, on)))}
	policy.Status = sumUp(policy, followers...)

	later := metav1.NewTime(epoch.Add(time.Hour))
	if diff := cmp.Diff(policy.Status, aggregate(policy, nil, membership{matched: 1, followers: followers}, later)); diff != "" {
		t.Error(diff)
	}

	// What changes gets the time of the change, what does not keeps its own.
	followers[0].recovery.Status.Conditions[0].Status = metav1.ConditionFalse
	next := aggregate(policy, nil, membership{matched: 1, followers: followers}, later)
	for kind, want := range map[string]metav1.Time{"RestartReady": later, "Accepted": epoch, "Applied": epoch, "TargetMet": epoch} {
		if got := meta.FindStatusCondition(next.Conditions, kind).LastTransitionTime; !got.Equal(&want) {
			t.Errorf("%s changed at %v, want %v", kind, got, want)
		}
	}
	if meta.FindStatusCondition(policy.Status.Conditions, "RestartReady").Status != metav1.ConditionTrue {
		t.Error("the status of the policy in the cache was changed")
	}
}

func TestAggregatePools(t *testing.T) {
	classes := func(samples int32, ms int64) *v1alpha1.RecoveryStats {
		if samples == 0 {
			return nil
		}
		p := func() *int64 {
			if ms == 0 {
				return nil
			}
			return ptr.To(ms)
		}
		return &v1alpha1.RecoveryStats{Samples: samples, P50Milliseconds: p(), P90Milliseconds: p(), P95Milliseconds: p(), MaxMilliseconds: p()}
	}
	zeroes := recoveryStats([]int64{0})
	policy := makePolicy("p").pools(v1alpha1.NodePool{Name: "a", Target: &v1alpha1.RecoveryTarget{RecoverySeconds: 5}}, v1alpha1.NodePool{Name: "b"}).obj()
	selecting := makePolicy("p").obj()

	cases := map[string]struct {
		policy    *v1alpha1.EdgeRecoveryPolicy
		followers []follower
		want      []v1alpha1.PoolStatus
		wantP95   *int64
	}{
		"pools that are named are shown, also without nodes": {policy, nil, []v1alpha1.PoolStatus{
			{Name: "a", TargetSeconds: 5, TargetMet: "Unknown"}, {Name: "b", TargetSeconds: 30, TargetMet: "Unknown"}}, nil},
		"offline and online are taken apart, and the slower of the slowest pool is the policy's": {policy,
			[]follower{
				follow(policy, "1", "a", measuring(took(3000, off), took(4000, on))),
				follow(policy, "2", "b", saying(metav1.ConditionTrue), measuring(took(20_000, off))),
			}, []v1alpha1.PoolStatus{
				{Name: "a", TargetSeconds: 5, Nodes: 1, Offline: classes(1, 3000), Online: classes(1, 4000), TargetMet: "True"},
				{Name: "b", TargetSeconds: 30, Nodes: 1, RestartReady: 1, Offline: classes(1, 20_000), TargetMet: "True"},
			}, ptr.To[int64](20_000)},
		"each pool is held to its own target": {policy,
			[]follower{follow(policy, "1", "a", measuring(took(6000, on))), follow(policy, "2", "b", measuring(took(6000, on)))},
			[]v1alpha1.PoolStatus{
				{Name: "a", TargetSeconds: 5, Nodes: 1, Online: classes(1, 6000), TargetMet: "False"},
				{Name: "b", TargetSeconds: 30, Nodes: 1, Online: classes(1, 6000), TargetMet: "True"},
			}, ptr.To[int64](6000)},
		"a percentile on an incomplete recovery misses the target and leaves the policy without a figure": {policy,
			[]follower{follow(policy, "1", "a", measuring(took(1000, on), failed(off))), follow(policy, "2", "b", measuring(took(1000, on)))},
			[]v1alpha1.PoolStatus{
				{Name: "a", TargetSeconds: 5, Nodes: 1, Offline: classes(1, 0), Online: classes(1, 1000), TargetMet: "False"},
				{Name: "b", TargetSeconds: 30, Nodes: 1, Online: classes(1, 1000), TargetMet: "True"},
			}, nil},
		"a recovery of no time at all is a figure": {policy,
			[]follower{follow(policy, "1", "a", measuring(took(0, on)))},
			[]v1alpha1.PoolStatus{
				{Name: "a", TargetSeconds: 5, Nodes: 1, Online: zeroes, TargetMet: "True"},
				{Name: "b", TargetSeconds: 30, TargetMet: "Unknown"},
			}, ptr.To[int64](0)},
		"a record that is still being measured is no sample": {policy,
			[]follower{follow(policy, "1", "a", measuring(running(), took(1000, off)))},
			[]v1alpha1.PoolStatus{
				{Name: "a", TargetSeconds: 5, Nodes: 1, Offline: classes(1, 1000), TargetMet: "True"},
				{Name: "b", TargetSeconds: 30, TargetMet: "Unknown"},
			}, ptr.To[int64](1000)},
		"a record that does not say how it began is not lost": {policy,
			[]follower{follow(policy, "1", "a", measuring(took(1000, "")))},
			[]v1alpha1.PoolStatus{
				{Name: "a", TargetSeconds: 5, Nodes: 1, Online: classes(1, 1000), TargetMet: "True"},
				{Name: "b", TargetSeconds: 30, TargetMet: "Unknown"},
			}, ptr.To[int64](1000)},
		"with a node selector, nodes without a pool are the pool with the empty name": {selecting,
			[]follower{follow(selecting, "1", ""), follow(selecting, "2", "x"), follow(selecting, "3", "")},
			[]v1alpha1.PoolStatus{
				{Name: "", TargetSeconds: 30, Nodes: 2, TargetMet: "Unknown"},
				{Name: "x", TargetSeconds: 30, Nodes: 1, TargetMet: "Unknown"},
			}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status := sumUp(tc.policy, tc.followers...)
			if diff := cmp.Diff(tc.want, status.Pools); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.wantP95, status.P95Milliseconds); diff != "" {
				t.Errorf("p95: %s", diff)
			}
		})
	}
}
