package controllers

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"rekindle.edge/api/v1alpha1"
)

func TestNodeSelector(t *testing.T) {
	cases := map[string]struct {
		policy *policyBuilder
		labels labels.Set
		want   bool
	}{
		"an empty selector selects a node without labels": {makePolicy("p"), nil, true},
		"a selector selects a node with its label":        {makePolicy("p").selecting("a", "b"), labels.Set{"a": "b"}, true},
		"a selector leaves a node with another value":     {makePolicy("p").selecting("a", "b"), labels.Set{"a": "c"}, false},
		"pools select a node of the second of them": {
			makePolicy("p").pools(v1alpha1.NodePool{Name: "x"}, v1alpha1.NodePool{Name: "y"}), labels.Set{poolKey: "y"}, true},
		"pools leave a node of another pool":       {makePolicy("p").pools(v1alpha1.NodePool{Name: "x"}), labels.Set{poolKey: "z"}, false},
		"pools leave a node without a pool":        {makePolicy("p").pools(v1alpha1.NodePool{Name: "x"}), nil, false},
		"pools leave a node with the label's name": {makePolicy("p").pools(v1alpha1.NodePool{Name: "x"}), labels.Set{"nodepool": "x"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			selector, err := nodeSelector(&tc.policy.Spec)
			if err != nil {
				t.Fatal(err)
			}
			if got := selector.Matches(tc.labels); got != tc.want {
				t.Errorf("selects = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestSelectorProblemsNameTheField(t *testing.T) {
	bad := &metav1.LabelSelector{MatchLabels: map[string]string{"-a": "-", "-b": "-", "-c": "-"}}
	cases := map[string]struct {
		change func(*v1alpha1.EdgeRecoveryPolicySpec)
		want   string
	}{
		"a node selector with an unknown operator": {func(s *v1alpha1.EdgeRecoveryPolicySpec) {
			s.NodeSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
		}, "spec.nodeSelector.matchExpressions[0].operator"},
		"a node selector with an operator that needs values": {func(s *v1alpha1.EdgeRecoveryPolicySpec) {
			s.NodeSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "In"}}}
		}, "spec.nodeSelector.matchExpressions[0].values"},
		"a pool label key with too long a prefix": {func(s *v1alpha1.EdgeRecoveryPolicySpec) {
			s.NodeSelector, s.NodePools, s.NodePoolLabelKey = nil, []v1alpha1.NodePool{{Name: "x"}}, strings.Repeat("a", 254)+"/b"
		}, "spec.nodePoolLabelKey"},
		"a warm resource": {func(s *v1alpha1.EdgeRecoveryPolicySpec) {
			s.CacheWarmup.Resources = []v1alpha1.WarmResource{{Resource: "a"}, {Resource: "b", LabelSelector: bad}}
		}, "spec.cacheWarmup.resources[1].labelSelector"},
		"a pod selector of a stage": {func(s *v1alpha1.EdgeRecoveryPolicySpec) {
			s.StartupOrdering.Stages = []v1alpha1.Stage{{}, {Pods: []v1alpha1.PodSelector{{}, {}, {LabelSelector: bad}}}}
		}, "spec.startupOrdering.stages[1].pods[2].labelSelector"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			policy := makePolicy("p")
			tc.change(&policy.Spec)
			problem := ranked(policy)[0].problem
			if problem == nil || !strings.Contains(problem.Error(), tc.want) {
				t.Fatalf("problem = %v, want one that names %s", problem, tc.want)
			}
			// Maps are walked in random order; a text that changes is a write without need.
			for range 50 {
				if again := ranked(policy)[0].problem; again.Error() != problem.Error() {
					t.Fatalf("problem = %v, was %v", again, problem)
				}
			}
		})
	}
}
