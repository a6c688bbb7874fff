package controllers

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"rekindle.edge/api/v1alpha1"
)

// policyEvent is what a user is told about a policy, once for each change.
type policyEvent struct {
	kind, reason, action, note string
}

// Actions of events: what the controller was doing.
const (
	actionAssign  = "AssignNodes"
	actionMeasure = "MeasureRecoveries"
	actionJudge   = "JudgeRestarts"
)

// policyEvents returns what the step from one status to the next is worth telling. The
// steps are read from what is written in the object, so that a restart of the manager
// repeats nothing.
func policyEvents(before, after *v1alpha1.EdgeRecoveryPolicyStatus) []policyEvent {
	var told []policyEvent
	was := conditionOrEmpty(before, v1alpha1.ConditionAccepted)
	is := conditionOrEmpty(after, v1alpha1.ConditionAccepted)
	if is.Reason != was.Reason {
		kind := corev1.EventTypeNormal
		if is.Status != metav1.ConditionTrue {
			kind = corev1.EventTypeWarning
		}
		told = append(told, policyEvent{kind, is.Reason, actionAssign, is.Message})
	}
	for _, turn := range []struct{ condition, failed, action string }{
		{v1alpha1.ConditionTargetMet, v1alpha1.ReasonTargetMissed, actionMeasure},
		{v1alpha1.ConditionRestartReady, v1alpha1.ReasonNodesNotReady, actionJudge},
	} {
		was, is := conditionOrEmpty(before, turn.condition), conditionOrEmpty(after, turn.condition)
		if is.Status == was.Status {
			continue
		}
		switch is.Status {
		case metav1.ConditionTrue:
			told = append(told, policyEvent{corev1.EventTypeNormal, turn.condition, turn.action, is.Message})
		case metav1.ConditionFalse:
			told = append(told, policyEvent{corev1.EventTypeWarning, turn.failed, turn.action, is.Message})
		}
	}
	return told
}

func conditionOrEmpty(status *v1alpha1.EdgeRecoveryPolicyStatus, kind string) metav1.Condition {
	if condition := meta.FindStatusCondition(status.Conditions, kind); condition != nil {
		return *condition
	}
	return metav1.Condition{}
}

func tell(recorder events.EventRecorder, policy *v1alpha1.EdgeRecoveryPolicy, told []policyEvent) {
	for _, e := range told {
		recorder.Eventf(policy, nil, e.kind, e.reason, e.action, "%s", e.note)
	}
}
