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

// followersOf returns the nodes that follow the policy, and the number of nodes that it
// selects, which includes those that follow a better one.
func followersOf(policy *v1alpha1.EdgeRecoveryPolicy, ranked []candidate, nodes []corev1.Node, recoveries []v1alpha1.NodeRecovery) (matched int, followers []follower) {
	byName := make(map[string]*v1alpha1.NodeRecovery, len(recoveries))
	for i := range recoveries {
		byName[recoveries[i].Name] = &recoveries[i]
	}
	self := candidateOf(policy, ranked)
	if self == nil {
		return 0, nil
	}
	for i := range nodes {
		node := &nodes[i]
		recovery := byName[node.Name]
		if _, stale := ownership(node, recovery); stale {
			recovery = nil
		}
		holder := ""
		if recovery != nil {
			holder = recovery.Spec.PolicyName
		}
		if !self.selects(node.Labels, holder) {
			continue
		}
		matched++
		if assign(ranked, node.Labels, holder) != self {
			continue
		}
		if holder != policy.Name {
			recovery = nil
		}
		followers = append(followers, follower{node: node, recovery: recovery})
	}
	return matched, followers
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
