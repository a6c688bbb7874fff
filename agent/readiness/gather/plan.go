package gather

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"rekindle.edge/agent/gate/order"
	"rekindle.edge/agent/readiness"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

// Plan is the start of the node's pods as the snapshot has them, by a policy; nil: none.
func Plan(objects *snapshot.Objects, policy *v1alpha1.NodeRecoverySpec) []readiness.Stage {
	place := func([]byte) (int, string) { return 0, "" }
	if policy != nil && len(policy.StartupOrdering.Stages) > 0 {
		if places, err := order.Places(policy.StartupOrdering); err == nil {
			place = places
		}
	}
	list, _ := objects.List(snapshot.Pods)
	var pods []readiness.Pod
	for _, object := range list {
		pod := &corev1.Pod{}
		if json.Unmarshal(object.Raw, pod) != nil || !shouldRun(pod) {
			continue
		}
		p := readiness.Pod{Pod: pod}
		p.Stage, p.StageName = place(object.Raw)
		pods = append(pods, p)
	}
	return readiness.Plan(pods, policy)
}
