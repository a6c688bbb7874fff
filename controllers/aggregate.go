package controllers

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/api/v1alpha1"
)

// What the nodes report becomes the status of their policy in one pass over them:
//
//   - Counts of applied and verdicts. A node that is out of reach is counted as offline and
//     in no verdict: its last one may be old, and nothing waits for it.
//   - Samples: every finished recovery of every node, also of nodes out of reach. One that
//     does not say how it began counts as online, so that it is not lost.
//   - Findings of the nodes in reach; what was missed while cut off, of all nodes.

// aggregate returns the status of a policy. problem says why the policy cannot be carried
// out, nil if it can; now is the time of conditions that change.
func aggregate(policy *v1alpha1.EdgeRecoveryPolicy, problem error, members membership, now metav1.Time) v1alpha1.EdgeRecoveryPolicyStatus {
	sum := newSummary(policy)
	for _, f := range members.followers {
		sum.add(policy, f)
	}
	sum.nodes.Matched = int32(members.matched)
	pools, p95 := poolStatuses(policy, sum.pools)

	status := v1alpha1.EdgeRecoveryPolicyStatus{
		Conditions:         append([]metav1.Condition(nil), policy.Status.Conditions...),
		ObservedGeneration: policy.Generation,
		Nodes:              sum.nodes,
		P95Milliseconds:    p95,
		SlowestNodes:       slowestNodes(members.followers),
		TopReasons:         topReasons(sum.reasons),
		MissedResources:    topMissed(sum.missed),
	}
	for _, condition := range []metav1.Condition{
		acceptedCondition(problem, members),
		appliedCondition(problem, sum),
		restartReadyCondition(sum),
		targetMetCondition(pools),
	} {
		condition.ObservedGeneration = policy.Generation
		condition.LastTransitionTime = now
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	status.Pools = boundPools(pools)
	return status
}

// summary is what one pass over the nodes collects.
type summary struct {
	nodes v1alpha1.NodeCounts
	// followers, inReach and appliedInReach are numbers of nodes.
	followers, inReach, appliedInReach int
	pools                              map[string]*poolSummary
	reasons                            map[string]v1alpha1.ReasonCount
	missed                             map[missedResource]int32
}

type poolSummary struct {
	nodes, restartReady int32
	offline, online     []int64 // lengths in milliseconds
}

type missedResource struct{ group, resource string }

func newSummary(policy *v1alpha1.EdgeRecoveryPolicy) *summary {
	sum := &summary{
		pools:   map[string]*poolSummary{},
		reasons: map[string]v1alpha1.ReasonCount{},
		missed:  map[missedResource]int32{},
	}
	// A pool that is named and has no nodes is shown: it may be misspelt.
	for _, pool := range policy.Spec.NodePools {
		sum.pools[pool.Name] = &poolSummary{}
	}
	return sum
}

func (s *summary) add(policy *v1alpha1.EdgeRecoveryPolicy, f follower) {
	name := poolOf(policy, f.node.Labels)
	pool := s.pools[name]
	if pool == nil {
		pool = &poolSummary{}
		s.pools[name] = pool
	}
	pool.nodes++
	s.followers++

	reachable := !outOfReach(f.node)
	done := applied(policy, f.recovery)
	if done {
		s.nodes.Applied++
	}
	if reachable {
		s.inReach++
		if done {
			s.appliedInReach++
		}
	}
	switch ready := verdict(f.recovery); {
	case !reachable:
		s.nodes.Offline++
	case ready == metav1.ConditionTrue:
		s.nodes.RestartReady++
		pool.restartReady++
	case ready == metav1.ConditionFalse:
		s.nodes.NotRestartReady++
	default:
		s.nodes.Unknown++
	}
	if f.recovery == nil {
		return
	}
	s.addReports(pool, &f.recovery.Status, reachable)
}

func (s *summary) addReports(pool *poolSummary, status *v1alpha1.NodeRecoveryStatus, reachable bool) {
	for i := range status.Recoveries {
		recovery := &status.Recoveries[i]
		switch {
		case !finished(recovery):
		case recovery.ConnectivityAtStart == v1alpha1.ConnectivityOffline:
			pool.offline = append(pool.offline, length(recovery))
		default:
			pool.online = append(pool.online, length(recovery))
		}
	}
	if reachable {
		count(s.reasons, status.Findings)
	}
	seen := map[missedResource]bool{}
	for _, missed := range status.MissedResources {
		// Several clients of a node may miss the same resource.
		key := missedResource{missed.Group, missed.Resource}
		if !seen[key] {
			seen[key] = true
			s.missed[key]++
		}
	}
}

// applied says whether the node's agent has taken over this generation of the policy.
func applied(policy *v1alpha1.EdgeRecoveryPolicy, recovery *v1alpha1.NodeRecovery) bool {
	return recovery != nil &&
		recovery.Spec.PolicyGeneration == policy.Generation &&
		recovery.Status.ObservedGeneration == recovery.Generation
}

// verdict returns whether the node would come back; Unknown until its agent has said so.
func verdict(recovery *v1alpha1.NodeRecovery) metav1.ConditionStatus {
	if recovery != nil {
		if condition := meta.FindStatusCondition(recovery.Status.Conditions, v1alpha1.ConditionRestartReady); condition != nil {
			return condition.Status
		}
	}
	return metav1.ConditionUnknown
}
