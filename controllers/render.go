package controllers

import "rekindle.edge/api/v1alpha1"

// poolOf returns the pool that a node is in for the policy; empty without a pool label.
func poolOf(policy *v1alpha1.EdgeRecoveryPolicy, nodeLabels map[string]string) string {
	return nodeLabels[policy.Spec.NodePoolLabelKey]
}

// targetOf returns the target of a pool: its own, or the policy's.
func targetOf(policy *v1alpha1.EdgeRecoveryPolicy, pool string) v1alpha1.RecoveryTarget {
	for _, p := range policy.Spec.NodePools {
		if p.Name == pool && p.Target != nil {
			return *p.Target
		}
	}
	return policy.Spec.Target
}

// renderSpec returns the node's part of the policy. It shares nothing with the policy.
func renderSpec(policy *v1alpha1.EdgeRecoveryPolicy, nodeLabels map[string]string) v1alpha1.NodeRecoverySpec {
	pool := poolOf(policy, nodeLabels)
	return v1alpha1.NodeRecoverySpec{
		PolicyName:       policy.Name,
		PolicyGeneration: policy.Generation,
		Pool:             pool,
		Mode:             policy.Spec.Mode,
		Target:           targetOf(policy, pool),
		CacheWarmup:      *policy.Spec.CacheWarmup.DeepCopy(),
		StartupOrdering:  *policy.Spec.StartupOrdering.DeepCopy(),
		Snapshot:         *policy.Spec.Snapshot.DeepCopy(),
		Offline:          *policy.Spec.Offline.DeepCopy(),
	}
}
