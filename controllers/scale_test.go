package controllers

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/api/v1alpha1"
)

// fleet returns 5,000 nodes in 50 pools that follow the first of ten policies of 16 stages,
// each with five recoveries, one node in ten out of reach.
func fleet() ([]v1alpha1.EdgeRecoveryPolicy, []corev1.Node, []v1alpha1.NodeRecovery) {
	const nodeCount = 5000
	var policies []v1alpha1.EdgeRecoveryPolicy
	for i := range 10 {
		policy := makePolicy(fmt.Sprintf("policy-%d", i)).priority(int32(100 - i))
		for stage := range 16 {
			policy.Spec.StartupOrdering.Stages = append(policy.Spec.StartupOrdering.Stages, v1alpha1.Stage{
				Name: fmt.Sprint("stage-", stage),
				Pods: []v1alpha1.PodSelector{{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint("app-", stage)}}}},
			})
		}
		policies = append(policies, policy.EdgeRecoveryPolicy)
	}
	nodes := make([]corev1.Node, 0, nodeCount)
	recoveries := make([]v1alpha1.NodeRecovery, 0, nodeCount)
	for i := range nodeCount {
		f := follow(&policies[0], fmt.Sprintf("node-%04d", i), fmt.Sprintf("pool-%02d", i%50), saying(metav1.ConditionTrue),
			measuring(took(int64(10_000+i), off), took(int64(8_000+i), on), took(int64(9_000+i), off), took(7000, on), took(6000, on)))
		if i%10 == 0 {
			f = offline(f)
		}
		nodes, recoveries = append(nodes, *f.node), append(recoveries, *f.recovery)
	}
	return policies, nodes, recoveries
}

func TestFiveThousandNodes(t *testing.T) {
	policies, nodes, recoveries := fleet()
	all := rank(policies)
	for i := range nodes {
		if p := planNode(all, &nodes[i], &recoveries[i]); p.apply != nil || p.remove != nil {
			t.Fatalf("node %s is to be written without a change", nodes[i].Name)
		}
	}
	status := aggregate(&policies[0], nil, membersOf(&policies[0], all, nodes, recoveries), epoch)
	if want := (v1alpha1.NodeCounts{Matched: 5000, Applied: 5000, RestartReady: 4500, Offline: 500}); status.Nodes != want {
		t.Errorf("nodes = %+v, want %+v", status.Nodes, want)
	}
	if len(status.Pools) != 50 || status.Pools[0].Offline.Samples != 200 || status.Pools[0].Online.Samples != 300 {
		t.Errorf("pools = %d, the first with %+v and %+v", len(status.Pools), status.Pools[0].Offline, status.Pools[0].Online)
	}
	if members := membersOf(&policies[9], all, nodes, recoveries); members.matched != 5000 || len(members.followers) != 0 {
		t.Errorf("the last policy has %d nodes and %d followers, want 5000 and 0", members.matched, len(members.followers))
	}
}

func BenchmarkPlanNode(b *testing.B) {
	policies, nodes, recoveries := fleet()
	for b.Loop() {
		planNode(rank(policies), &nodes[0], &recoveries[0])
	}
}

func BenchmarkPolicyStatusOf5000Nodes(b *testing.B) {
	policies, nodes, recoveries := fleet()
	for b.Loop() {
		aggregate(&policies[0], nil, membersOf(&policies[0], rank(policies), nodes, recoveries), epoch)
	}
}
