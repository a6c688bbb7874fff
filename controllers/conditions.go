package controllers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/api/v1alpha1"
)

// One pure function a condition; aggregate adds generation and time. Messages carry counts
// and field names only, so that they change no more often than what they speak of.

func acceptedCondition(problem error, members membership) metav1.Condition {
	matched, followers := members.matched, len(members.followers)
	c := metav1.Condition{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionFalse}
	switch {
	case problem != nil:
		c.Reason = v1alpha1.ReasonInvalidSelector
		c.Message = fmt.Sprintf("%v. Nodes that follow this policy keep the configuration that they have; no other node takes it over.", problem)
	case matched == 0:
		c.Reason = v1alpha1.ReasonNoMatchingNodes
		c.Message = "No node is selected. Compare the selector, or the pool names and nodePoolLabelKey, with the labels of the nodes."
	case followers == 0:
		c.Reason = v1alpha1.ReasonOverridden
		c.Message = fmt.Sprintf("All selected nodes (%d) follow a better policy (%s): higher priority, then older, then name.", matched, mostNodes(members.taken))
	case followers < matched:
		c.Status = metav1.ConditionTrue
		c.Reason = v1alpha1.ReasonPartlyOverridden
		c.Message = fmt.Sprintf("%d of %d selected nodes follow a better policy (%s): higher priority, then older, then name.", matched-followers, matched, mostNodes(members.taken))
	default:
		c.Status = metav1.ConditionTrue
		c.Reason = v1alpha1.ReasonAccepted
		c.Message = fmt.Sprintf("Nodes that follow this policy: %d.", followers)
	}
	return c
}

// mostNodes names the three policies that most nodes follow, by name among equals.
func mostNodes(nodes map[string]int) string {
	names := slices.SortedFunc(maps.Keys(nodes), func(a, b string) int {
		return cmp.Or(cmp.Compare(nodes[b], nodes[a]), cmp.Compare(a, b))
	})
	if len(names) > 3 {
		names = append(names[:3], "others")
	}
	return strings.Join(names, ", ")
}

func appliedCondition(problem error, sum *summary) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionApplied, Status: metav1.ConditionFalse}
	switch {
	case problem != nil:
		c.Reason = v1alpha1.ReasonInvalidSelector
		c.Message = "This generation of the policy is not handed to any node; see Accepted."
	case sum.followers == 0:
		c.Status = metav1.ConditionUnknown
		c.Reason = v1alpha1.ReasonNoNodes
		c.Message = "No node follows this policy."
	case sum.appliedInReach < sum.inReach:
		c.Reason = v1alpha1.ReasonWaitingForAgents
		c.Message = fmt.Sprintf("%d of %d nodes in reach have taken over this generation; %d are offline. See NodeRecovery status.observedGeneration, and whether the agent runs on the nodes.",
			sum.appliedInReach, sum.inReach, sum.nodes.Offline)
	default:
		c.Status = metav1.ConditionTrue
		c.Reason = v1alpha1.ReasonAllNodesApplied
		c.Message = fmt.Sprintf("All nodes in reach (%d) have taken over this generation; %d are offline.", sum.inReach, sum.nodes.Offline)
	}
	return c
}

func restartReadyCondition(sum *summary) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionRestartReady, Status: metav1.ConditionUnknown}
	switch {
	case sum.followers == 0:
		c.Reason = v1alpha1.ReasonNoNodes
		c.Message = "No node follows this policy."
	case sum.inReach == 0:
		c.Reason = v1alpha1.ReasonNoNodes
		c.Message = fmt.Sprintf("All nodes (%d) are offline.", sum.nodes.Offline)
	case sum.nodes.NotRestartReady > 0:
		c.Status = metav1.ConditionFalse
		c.Reason = v1alpha1.ReasonNodesNotReady
		c.Message = fmt.Sprintf("%d of %d nodes in reach would not come back; topReasons says why.", sum.nodes.NotRestartReady, sum.inReach)
	case sum.nodes.Unknown > 0:
		c.Reason = v1alpha1.ReasonNotEvaluated
		c.Message = fmt.Sprintf("%d of %d nodes in reach have no verdict yet.", sum.nodes.Unknown, sum.inReach)
	default:
		c.Status = metav1.ConditionTrue
		c.Reason = v1alpha1.ReasonAllNodesReady
		c.Message = fmt.Sprintf("All nodes in reach (%d) would come back; %d are offline.", sum.inReach, sum.nodes.Offline)
	}
	return c
}

func targetMetCondition(pools []v1alpha1.PoolStatus) metav1.Condition {
	var met, missed int
	for _, pool := range pools {
		switch pool.TargetMet {
		case v1alpha1.TruthTrue:
			met++
		case v1alpha1.TruthFalse:
			missed++
		}
	}
	c := metav1.Condition{Type: v1alpha1.ConditionTargetMet}
	switch {
	case missed > 0:
		c.Status = metav1.ConditionFalse
		c.Reason = v1alpha1.ReasonTargetMissed
		c.Message = fmt.Sprintf("%d of %d measured pools miss their target; see pools and slowestNodes.", missed, met+missed)
	case met > 0:
		c.Status = metav1.ConditionTrue
		c.Reason = v1alpha1.ReasonWithinTarget
		c.Message = fmt.Sprintf("All measured pools (%d) are within their target.", met)
	default:
		c.Status = metav1.ConditionUnknown
		c.Reason = v1alpha1.ReasonNoSamples
		c.Message = "No restart has been measured."
	}
	return c
}
