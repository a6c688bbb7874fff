package main

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/api/v1alpha1"
)

// stageLabel is on the pods of the first stage.
const stageLabel = "bench-stage"

// orderedPods are alike but for their age and label: the youngest are in the first stage.
var orderedPods = workload{
	node: "bench-ordered", count: 40, critical: 5,
	shape: func(_ *site, number int, pod *corev1.Pod) {
		if number < 5 {
			pod.Labels[stageLabel] = "first"
		}
	},
}

// firstStage is a policy with one stage; all other pods come after it.
func firstStage(waitFor v1alpha1.WaitFor) *v1alpha1.NodeRecoverySpec {
	return &v1alpha1.NodeRecoverySpec{StartupOrdering: v1alpha1.StartupOrdering{Stages: []v1alpha1.Stage{{
		Name: "first", WaitFor: waitFor,
		Pods: []v1alpha1.PodSelector{{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{stageLabel: "first"}}}},
	}}}}
}

// ordered is a node that is cut off, with a stage for the youngest of many pods.
var ordered = benchCase{
	name:     "ordered",
	workload: &orderedPods,
	agent:    true,
	spec:     firstStage(v1alpha1.WaitForStarted),
	limit:    2 * time.Minute,
	offline:  true,
	ready:    all,
	figures:  []string{criticalLastReady},
}

// unordered is the same without stages.
var unordered = benchCase{
	name:     "unordered",
	workload: &orderedPods,
	agent:    true,
	limit:    2 * time.Minute,
	offline:  true,
	ready:    all,
	figures:  []string{criticalLastReady},
}
