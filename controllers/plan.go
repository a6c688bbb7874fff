package controllers

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"rekindle.edge/api/v1alpha1"
)

// plan is what to do about one node: apply, remove, or nothing when both are nil.
type plan struct {
	// apply is the NodeRecovery as it shall be. Its UID is that of the object to change,
	// empty to create one.
	apply *v1alpha1.NodeRecovery
	// remove is the NodeRecovery to delete.
	remove *v1alpha1.NodeRecovery
}

// planNode compares a node and its NodeRecovery (either may be nil) with the policies.
//
// The object of a node that was deleted and re-created under its name belongs to the old
// one: it goes first, with its status, whether or not the garbage collector has got to it;
// its deletion brings the node here again.
func planNode(ranked []candidate, node *corev1.Node, live *v1alpha1.NodeRecovery) plan {
	if live != nil && !live.DeletionTimestamp.IsZero() {
		return plan{}
	}
	if node == nil {
		return plan{remove: live}
	}
	owned, stale := ownership(node, live)
	if stale {
		return plan{remove: live}
	}
	follows := assign(ranked, node.Labels, holderOf(live))
	if follows == nil {
		return plan{remove: live}
	}
	want := render(follows.policy, node)
	if live == nil {
		return plan{apply: want}
	}
	if follows.problem != nil { // so the spec is ours, of an earlier generation
		want.Spec = live.Spec
	}
	label, labelled := want.Labels[v1alpha1.LabelPolicy]
	if owned && isOurs(live) && equality.Semantic.DeepEqual(live.Spec, want.Spec) &&
		(!labelled || live.Labels[v1alpha1.LabelPolicy] == label) {
		return plan{}
	}
	want.UID = live.UID
	return plan{apply: want}
}

// ownership says whether the NodeRecovery is owned by this node, and whether it is owned by
// another one of the same name, which is gone.
func ownership(node *corev1.Node, live *v1alpha1.NodeRecovery) (owned, stale bool) {
	if live == nil {
		return false, false
	}
	for _, ref := range live.OwnerReferences {
		if ref.APIVersion != "v1" || ref.Kind != "Node" {
			continue
		}
		if ref.UID == node.UID {
			return true, false
		}
		stale = true
	}
	return false, stale
}

// render returns the NodeRecovery of a node that follows the policy.
func render(policy *v1alpha1.EdgeRecoveryPolicy, node *corev1.Node) *v1alpha1.NodeRecovery {
	recovery := &v1alpha1.NodeRecovery{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "NodeRecovery"},
		ObjectMeta: metav1.ObjectMeta{
			Name: node.Name,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID,
			}},
		},
		Spec: renderSpec(policy, node.Labels),
	}
	if len(validation.IsValidLabelValue(policy.Name)) == 0 {
		recovery.Labels = map[string]string{v1alpha1.LabelPolicy: policy.Name}
	}
	return recovery
}
