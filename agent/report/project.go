// Package report writes the status of the node's NodeRecovery: a projection of the store,
// brought about again whenever what the API server has differs.
package report

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

// Bounds of the CRD.
const (
	maxRecoveries = 5
	maxReason     = 64
	maxVersion    = 64
	maxPod        = 317
	maxBootID     = 36
)

// Facts are what the store says, and who says it.
type Facts struct {
	AgentVersion string
	// Spec that was taken over. Nil: built-in defaults apply.
	Spec *snapshot.Spec
	// Recoveries are closed records, newest first.
	Recoveries []v1alpha1.Recovery
}

// Project makes the status. Conditions that did not change keep the transition time that
// they have in the present status; others get the time now.
func Project(facts Facts, present v1alpha1.NodeRecoveryStatus, now metav1.Time) v1alpha1.NodeRecoveryStatus {
	status := v1alpha1.NodeRecoveryStatus{AgentVersion: cut(facts.AgentVersion, maxVersion)}
	mode := v1alpha1.ModeEnforce
	if facts.Spec != nil {
		status.ObservedGeneration = facts.Spec.Generation
		mode = facts.Spec.Spec.Mode
	}
	for _, condition := range conditions(mode) {
		if old := meta.FindStatusCondition(present.Conditions, condition.Type); old != nil && old.Status == condition.Status {
			condition.LastTransitionTime = old.LastTransitionTime
		} else {
			condition.LastTransitionTime = now.Rfc3339Copy()
		}
		condition.ObservedGeneration = status.ObservedGeneration
		status.Conditions = append(status.Conditions, condition)
	}
	for i, record := range facts.Recoveries[:min(maxRecoveries, len(facts.Recoveries))] {
		status.Recoveries = append(status.Recoveries, bounded(record, i == 0))
	}
	return status
}

// conditions of an agent that measures and does nothing else yet.
func conditions(mode v1alpha1.Mode) []metav1.Condition {
	unknown := func(kind, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: reason, Message: message}
	}
	const notYet = "This version of the agent measures restarts only."
	acts, actsMessage := v1alpha1.ReasonNotImplemented, notYet
	if mode == v1alpha1.ModeObserve {
		acts, actsMessage = v1alpha1.ReasonObserveOnly, "The policy's mode is Observe: nothing is changed on the node."
	}
	return []metav1.Condition{
		unknown(v1alpha1.ConditionRestartReady, v1alpha1.ReasonNotEvaluated, notYet),
		unknown(v1alpha1.ConditionSnapshotFresh, v1alpha1.ReasonNotImplemented, notYet),
		unknown(v1alpha1.ConditionImagesWarm, acts, actsMessage),
		unknown(v1alpha1.ConditionLocalAPIServing, acts, actsMessage),
	}
}

// bounded is a record that the CRD accepts: a value that is too long must not keep the
// whole status from being written. Only the newest record carries pods.
func bounded(record v1alpha1.Recovery, newest bool) v1alpha1.Recovery {
	record = *record.DeepCopy()
	record.BootID = cut(record.BootID, maxBootID)
	record.IncompleteReason = cut(record.IncompleteReason, maxReason)
	if !newest {
		record.SlowestPods, record.HeldPods = nil, nil
		return record
	}
	for i := range record.SlowestPods {
		pod := &record.SlowestPods[i]
		pod.Pod, pod.Reason = cut(pod.Pod, maxPod), cut(pod.Reason, maxReason)
	}
	for i := range record.HeldPods {
		pod := &record.HeldPods[i]
		pod.Pod, pod.Reason = cut(pod.Pod, maxPod), cut(pod.Reason, maxReason)
	}
	return record
}

// cut shortens to a number of characters, as OpenAPI counts them.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	runes := slices.Collect(strings.SplitSeq(s, ""))
	return strings.Join(runes[:min(limit, len(runes))], "")
}
