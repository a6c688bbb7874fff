package controllers

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"rekindle.edge/api/v1alpha1"
)

// The objects of the tests in this package, as the API server would hand them out.

const poolKey = v1alpha1.DefaultNodePoolLabelKey

var epoch = metav1.NewTime(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))

type policyBuilder struct{ v1alpha1.EdgeRecoveryPolicy }

// makePolicy returns a policy of generation 1 that selects every node.
func makePolicy(name string) *policyBuilder {
	p := &policyBuilder{}
	p.Name, p.Generation, p.CreationTimestamp = name, 1, epoch
	p.Spec.NodeSelector = &metav1.LabelSelector{}
	p.Spec.NodePoolLabelKey = poolKey
	p.Spec.Target.RecoverySeconds = 30
	return p
}

func (p *policyBuilder) priority(n int32) *policyBuilder { p.Spec.Priority = n; return p }

func (p *policyBuilder) olderBy(d time.Duration) *policyBuilder {
	p.CreationTimestamp = metav1.NewTime(epoch.Add(-d))
	return p
}

func (p *policyBuilder) selecting(key, value string) *policyBuilder {
	p.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	return p
}

func (p *policyBuilder) pools(pools ...v1alpha1.NodePool) *policyBuilder {
	p.Spec.NodeSelector, p.Spec.NodePools = nil, pools
	return p
}

func (p *policyBuilder) badNodeSelector() *policyBuilder { return p.selecting("-", "") }

func (p *policyBuilder) badStage() *policyBuilder {
	p.Spec.StartupOrdering.Stages = []v1alpha1.Stage{{
		Name: "s", Pods: []v1alpha1.PodSelector{{}, {LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"-": ""}}}},
	}}
	return p
}

func (p *policyBuilder) deleted() *policyBuilder {
	p.DeletionTimestamp = ptr.To(epoch)
	return p
}

func (p *policyBuilder) obj() *v1alpha1.EdgeRecoveryPolicy { return &p.EdgeRecoveryPolicy }

func ranked(policies ...*policyBuilder) []candidate {
	var list []v1alpha1.EdgeRecoveryPolicy
	for _, p := range policies {
		list = append(list, p.EdgeRecoveryPolicy)
	}
	return rank(list)
}

// makeNode returns a node in reach; labels are key, value pairs.
func makeNode(name string, labels ...string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{}}}
	for i := 0; i < len(labels); i += 2 {
		node.Labels[labels[i]] = labels[i+1]
	}
	return withReady(node, corev1.ConditionTrue)
}

func withReady(node *corev1.Node, ready corev1.ConditionStatus) *corev1.Node {
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	return node
}

// makeRecovery returns the node's NodeRecovery as it is right after the policy was
// rendered, taken over by the agent.
func makeRecovery(policy *v1alpha1.EdgeRecoveryPolicy, node *corev1.Node) *v1alpha1.NodeRecovery {
	recovery := render(policy, node)
	recovery.UID, recovery.Generation = types.UID("nrec-"+node.Name), 1
	recovery.Status.ObservedGeneration = 1
	recovery.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: fieldOwner, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`),
	}}
	return recovery
}

// follow returns a node in a pool that follows the policy, with what change does to its
// NodeRecovery.
func follow(policy *v1alpha1.EdgeRecoveryPolicy, name, pool string, change ...func(*v1alpha1.NodeRecovery)) follower {
	node := makeNode(name)
	if pool != "" {
		node.Labels[poolKey] = pool
	}
	recovery := makeRecovery(policy, node)
	for _, c := range change {
		c(recovery)
	}
	return follower{node: node, recovery: recovery}
}

func offline(f follower) follower {
	withReady(f.node, corev1.ConditionUnknown)
	return f
}

// saying gives the verdict of the node's agent.
func saying(ready metav1.ConditionStatus, reasons ...string) func(*v1alpha1.NodeRecovery) {
	return func(r *v1alpha1.NodeRecovery) {
		r.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionRestartReady, Status: ready, Reason: "Test"}}
		for _, reason := range reasons {
			r.Status.Findings = append(r.Status.Findings, v1alpha1.Finding{Reason: reason, Severity: v1alpha1.SeverityBlocksPod})
		}
	}
}

// measuring gives the node's recoveries, newest first.
func measuring(recoveries ...v1alpha1.Recovery) func(*v1alpha1.NodeRecovery) {
	return func(r *v1alpha1.NodeRecovery) {
		for i := range recoveries {
			recoveries[i].BootID = fmt.Sprintf("boot-%d", i)
		}
		r.Status.Recoveries = recoveries
	}
}

func took(milliseconds int64, connectivity v1alpha1.Connectivity) v1alpha1.Recovery {
	return v1alpha1.Recovery{Result: v1alpha1.RecoveryComplete, TotalMilliseconds: ptr.To(milliseconds), ConnectivityAtStart: connectivity}
}

func failed(connectivity v1alpha1.Connectivity) v1alpha1.Recovery {
	return v1alpha1.Recovery{Result: v1alpha1.RecoveryIncomplete, ConnectivityAtStart: connectivity}
}

// running is a record that is still being measured.
func running() v1alpha1.Recovery {
	return v1alpha1.Recovery{ConnectivityAtStart: v1alpha1.ConnectivityOffline}
}

func nodeList(nodes ...*corev1.Node) []corev1.Node {
	var list []corev1.Node
	for _, n := range nodes {
		list = append(list, *n)
	}
	return list
}
