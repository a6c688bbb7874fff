package controllers

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"rekindle.edge/api/v1alpha1"
)

// nodeEvents returns what the step from one status of a NodeRecovery to the next is worth
// telling: another verdict, and a recovery that is over, with the stages that timed out.
// Records that come with the first status of an object are old.
func nodeEvents(before, after *v1alpha1.NodeRecoveryStatus) []toldEvent {
	told := verdictEvents(before, after)
	if len(before.Conditions) == 0 || len(after.Recoveries) == 0 {
		return told
	}
	newest := &after.Recoveries[0]
	known := slices.ContainsFunc(before.Recoveries, func(r v1alpha1.Recovery) bool { return r.BootID == newest.BootID })
	if known || !finished(newest) {
		return told
	}
	return append(told, recoveryEvents(newest)...)
}

func verdictEvents(before, after *v1alpha1.NodeRecoveryStatus) []toldEvent {
	was := conditionOrEmpty(before.Conditions, v1alpha1.ConditionRestartReady)
	is := conditionOrEmpty(after.Conditions, v1alpha1.ConditionRestartReady)
	switch {
	case is.Status == was.Status && (is.Status != metav1.ConditionFalse || is.Reason == was.Reason):
		return nil
	case is.Status == metav1.ConditionTrue:
		return []toldEvent{{corev1.EventTypeNormal, v1alpha1.EventRestartReady, actionJudge, is.Message}}
	case is.Status == metav1.ConditionFalse:
		return []toldEvent{{corev1.EventTypeWarning, v1alpha1.EventNotRestartReady, actionJudge, is.Reason + ": " + is.Message}}
	}
	return nil
}

func recoveryEvents(r *v1alpha1.Recovery) []toldEvent {
	how := fmt.Sprintf("%d of %d pods Ready again after a restart (%s, API server %s)", r.ReadyPods, r.ExpectedPods, r.PreviousEnd, r.ConnectivityAtStart)
	var told []toldEvent
	if r.TotalMilliseconds != nil {
		told = append(told, toldEvent{corev1.EventTypeNormal, v1alpha1.EventRecovered, actionMeasure,
			fmt.Sprintf("%s: the last one %s after kernel start, with a target of %d s.", how, seconds(*r.TotalMilliseconds), r.TargetSeconds)})
	} else {
		note := fmt.Sprintf("%s: %s.", how, r.IncompleteReason)
		if len(r.SlowestPods) > 0 && r.SlowestPods[0].Milliseconds == nil {
			note += " Not Ready: " + r.SlowestPods[0].Pod + "; see status.recoveries."
		}
		told = append(told, toldEvent{corev1.EventTypeWarning, v1alpha1.EventRecoveryIncomplete, actionMeasure, note})
	}
	for _, stage := range r.Stages {
		if stage.Result == v1alpha1.StageTimedOut {
			told = append(told, toldEvent{corev1.EventTypeWarning, v1alpha1.EventStageTimedOut, actionOrder,
				fmt.Sprintf("The stage %s was opened %s after kernel start, and timed out waiting for %s.", stage.Name, seconds(stage.OpenedMilliseconds), stage.WaitedFor)})
		}
	}
	return told
}

func seconds(milliseconds int64) string {
	return (time.Duration(milliseconds) * time.Millisecond).Round(100 * time.Millisecond).String()
}

// telling makes events of the updates of NodeRecoveries, and no work. The agents write them,
// and may write nothing else; what changes while no manager runs is not told.
func telling(recorder events.EventRecorder) handler.EventHandler {
	return handler.Funcs{UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ queue) {
		before, ok := e.ObjectOld.(*v1alpha1.NodeRecovery)
		after, also := e.ObjectNew.(*v1alpha1.NodeRecovery)
		if ok && also && before.UID == after.UID {
			tell(recorder, after, nodeEvents(&before.Status, &after.Status))
		}
	}}
}
