package controllers

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"rekindle.edge/api/v1alpha1"
)

// Which policy does a node follow? The policies are ranked once, best first: higher
// priority, then older, then the name that sorts first. A node follows the first one that
// selects it. A policy with a selector that cannot be parsed keeps the nodes that it has,
// with the configuration that they have, and takes no new ones: a bad edit takes nothing
// away from a node.

// holderOf returns the policy that the node follows, by its NodeRecovery as it is in the
// cache; empty for none. It is believed only if the controllers applied the spec: else an
// edit by hand would make any policy that cannot be parsed the holder of the node, and
// would stay for as long as that one is not mended.
func holderOf(recovery *v1alpha1.NodeRecovery) string {
	if !isOurs(recovery) {
		return ""
	}
	return recovery.Spec.PolicyName
}

// isOurs says whether the spec is as the controllers applied it; see stripRecovery.
func isOurs(recovery *v1alpha1.NodeRecovery) bool {
	return recovery != nil && len(recovery.ManagedFields) > 0
}

// candidate is a policy with its node selector parsed.
type candidate struct {
	policy *v1alpha1.EdgeRecoveryPolicy
	// nodes is nil if the node selector cannot be parsed; problem says why.
	nodes   labels.Selector
	problem error
}

// rank returns the policies in the order in which they win, without those that are being
// deleted.
func rank(policies []v1alpha1.EdgeRecoveryPolicy) []candidate {
	ranked := make([]candidate, 0, len(policies))
	for i := range policies {
		policy := &policies[i]
		if !policy.DeletionTimestamp.IsZero() {
			continue
		}
		nodes, err := nodeSelector(&policy.Spec)
		if err == nil {
			err = checkPodSelectors(&policy.Spec)
		}
		ranked = append(ranked, candidate{policy: policy, nodes: nodes, problem: err})
	}
	slices.SortFunc(ranked, func(a, b candidate) int {
		return cmp.Or(
			cmp.Compare(b.policy.Spec.Priority, a.policy.Spec.Priority),
			a.policy.CreationTimestamp.Compare(b.policy.CreationTimestamp.Time),
			cmp.Compare(a.policy.Name, b.policy.Name),
		)
	})
	return ranked
}

// selects says whether the policy wants the node. holder is the policy that the node
// follows now; it decides where the selector cannot be parsed.
func (c candidate) selects(nodeLabels map[string]string, holder string) bool {
	if c.nodes == nil {
		return holder == c.policy.Name
	}
	return c.nodes.Matches(labels.Set(nodeLabels))
}

// assign returns the policy that a node follows, nil for none. holder is the policy that
// it follows now, empty for none.
func assign(ranked []candidate, nodeLabels map[string]string, holder string) *candidate {
	for i := range ranked {
		c := &ranked[i]
		if !c.selects(nodeLabels, holder) {
			continue
		}
		if c.problem == nil || holder == c.policy.Name {
			return c
		}
	}
	return nil
}
