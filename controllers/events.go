package controllers

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"rekindle.edge/api/v1alpha1"
)

// toldEvent is what a user is told about a policy or a node, once for each change.
type toldEvent struct {
	kind, reason, action, note string
}

// Actions of events: what the controller was doing.
const (
	actionAssign  = "AssignNodes"
	actionMeasure = "MeasureRecoveries"
	actionJudge   = "JudgeRestarts"
	actionOrder   = "OrderStart"
)

// policyEvents returns what the step from one status to the next is worth telling. The
// steps are read from what is written in the object, so that a restart of the manager
// repeats nothing.
func policyEvents(before, after *v1alpha1.EdgeRecoveryPolicyStatus) []toldEvent {
	var told []toldEvent
	was := conditionOrEmpty(before.Conditions, v1alpha1.ConditionAccepted)
	is := conditionOrEmpty(after.Conditions, v1alpha1.ConditionAccepted)
	if is.Reason != was.Reason {
		kind := corev1.EventTypeNormal
		if is.Status != metav1.ConditionTrue {
			kind = corev1.EventTypeWarning
		}
		told = append(told, toldEvent{kind, is.Reason, actionAssign, is.Message})
	}
	for _, turn := range []struct{ condition, failed, action string }{
		{v1alpha1.ConditionTargetMet, v1alpha1.ReasonTargetMissed, actionMeasure},
		{v1alpha1.ConditionRestartReady, v1alpha1.ReasonNodesNotReady, actionJudge},
	} {
		was, is := conditionOrEmpty(before.Conditions, turn.condition), conditionOrEmpty(after.Conditions, turn.condition)
		if is.Status == was.Status {
			continue
		}
		switch is.Status {
		case metav1.ConditionTrue:
			told = append(told, toldEvent{corev1.EventTypeNormal, turn.condition, turn.action, is.Message})
		case metav1.ConditionFalse:
			told = append(told, toldEvent{corev1.EventTypeWarning, turn.failed, turn.action, is.Message})
		}
	}
	return told
}

func conditionOrEmpty(conditions []metav1.Condition, kind string) metav1.Condition {
	if condition := meta.FindStatusCondition(conditions, kind); condition != nil {
		return *condition
	}
	return metav1.Condition{}
}

func tell(recorder events.EventRecorder, about runtime.Object, told []toldEvent) {
	for _, e := range told {
		recorder.Eventf(about, nil, e.kind, e.reason, e.action, "%s", e.note)
	}
}
