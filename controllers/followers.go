package controllers

import (
	corev1 "k8s.io/api/core/v1"

	"rekindle.edge/api/v1alpha1"
)

// follower is a node that follows a policy.
type follower struct {
	node *corev1.Node
	// recovery is nil until the node's NodeRecovery has been rendered from this policy.
	recovery *v1alpha1.NodeRecovery
}

// membership is how the nodes that a policy selects divide.
type membership struct {
	// matched is the number of nodes that the policy selects.
	matched   int
	followers []follower
	// taken counts the nodes that follow another policy, by the name of that one.
	taken map[string]int
}

// membersOf returns the nodes that the policy selects; none if it is being deleted.
func membersOf(policy *v1alpha1.EdgeRecoveryPolicy, ranked []candidate, nodes []corev1.Node, recoveries []v1alpha1.NodeRecovery) membership {
	members := membership{taken: map[string]int{}}
	byName := make(map[string]*v1alpha1.NodeRecovery, len(recoveries))
	for i := range recoveries {
		byName[recoveries[i].Name] = &recoveries[i]
	}
	self := candidateOf(policy, ranked)
	if self == nil {
		return members
	}
	for i := range nodes {
		node := &nodes[i]
		recovery := byName[node.Name]
		if _, stale := ownership(node, recovery); stale {
			recovery = nil
		}
		holder := holderOf(recovery)
		if !self.selects(node.Labels, holder) {
			continue
		}
		members.matched++
		if follows := assign(ranked, node.Labels, holder); follows != self {
			if follows != nil {
				members.taken[follows.policy.Name]++
			}
			continue
		}
		if recovery != nil && recovery.Spec.PolicyName != policy.Name {
			recovery = nil
		}
		members.followers = append(members.followers, follower{node: node, recovery: recovery})
	}
	return members
}

// candidateOf returns the policy's entry, nil if it is being deleted.
func candidateOf(policy *v1alpha1.EdgeRecoveryPolicy, ranked []candidate) *candidate {
	for i := range ranked {
		if ranked[i].policy.Name == policy.Name {
			return &ranked[i]
		}
	}
	return nil
}
