package controllers

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"rekindle.edge/api/v1alpha1"
)

func TestNodeEvents(t *testing.T) {
	verdict := func(status metav1.ConditionStatus, reason string, recoveries ...v1alpha1.Recovery) v1alpha1.NodeRecoveryStatus {
		return v1alpha1.NodeRecoveryStatus{
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionRestartReady, Status: status, Reason: reason, Message: "why"}}, Recoveries: recoveries,
		}
	}
	ready := func(recoveries ...v1alpha1.Recovery) v1alpha1.NodeRecoveryStatus {
		return verdict("True", "WouldComeBack", recoveries...)
	}
	complete := v1alpha1.Recovery{
		BootID: "two", Result: v1alpha1.RecoveryComplete, PreviousEnd: v1alpha1.PreviousEndPowerLoss, ConnectivityAtStart: v1alpha1.ConnectivityOffline,
		TotalMilliseconds: ptr.To[int64](7140), ExpectedPods: 10, ReadyPods: 10, TargetSeconds: 30,
	}
	staged := complete
	staged.Stages = []v1alpha1.StageRecovery{
		{Name: "db", OpenedMilliseconds: 1200, Result: v1alpha1.StageTimedOut, WaitedFor: "shop/db-0"}, {Name: "web", Result: v1alpha1.StageReady}, {Name: "Rest"},
	}
	incomplete := v1alpha1.Recovery{
		BootID: "two", Result: v1alpha1.RecoveryIncomplete, IncompleteReason: v1alpha1.IncompletePodsNotReady, ExpectedPods: 10, ReadyPods: 9,
		SlowestPods: []v1alpha1.PodRecovery{{Pod: "shop/web"}},
	}
	older := v1alpha1.Recovery{BootID: "one", Result: v1alpha1.RecoveryComplete, TotalMilliseconds: ptr.To[int64](1)}
	cases := map[string]struct {
		before, after v1alpha1.NodeRecoveryStatus
		want          []string
	}{
		"the first verdict":              {v1alpha1.NodeRecoveryStatus{}, ready(), []string{"Normal RestartReady why"}},
		"an image goes":                  {ready(), verdict("False", "ImageMissing"), []string{"Warning NotRestartReady ImageMissing: why"}},
		"something worse":                {verdict("False", "ImageMissing"), verdict("False", "DiskFull"), []string{"Warning NotRestartReady DiskFull: why"}},
		"the same again":                 {verdict("False", "ImageMissing"), verdict("False", "ImageMissing"), nil},
		"the cure":                       {verdict("False", "ImageMissing"), ready(), []string{"Normal RestartReady why"}},
		"it cannot be told":              {ready(), verdict("Unknown", "NotVisible"), nil},
		"nothing":                        {ready(older), ready(older), nil},
		"records with the first verdict": {v1alpha1.NodeRecoveryStatus{}, ready(complete, older), []string{"Normal RestartReady why"}},
		"a restart": {ready(older), ready(complete, older), []string{
			"Normal Recovered 10 of 10 pods Ready again after a restart (PowerLoss, API server Offline): the last one 7.1s after kernel start, with a target of 30 s.",
		}},
		"a restart with a stage that timed out": {ready(), ready(staged), []string{
			"Normal Recovered 10 of 10 pods Ready again after a restart (PowerLoss, API server Offline): the last one 7.1s after kernel start, with a target of 30 s.",
			"Warning StageTimedOut The stage db was opened 1.2s after kernel start, and timed out waiting for shop/db-0.",
		}},
		"a restart without a pod": {ready(), ready(incomplete), []string{
			"Warning RecoveryIncomplete 9 of 10 pods Ready again after a restart (, API server ): PodsNotReady. Not Ready: shop/web; see status.recoveries.",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range nodeEvents(&tc.before, &tc.after) {
				got = append(got, strings.Join([]string{e.kind, e.reason, e.note}, " "))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			recorder := events.NewFakeRecorder(10)
			before, after := &v1alpha1.NodeRecovery{Status: tc.before}, &v1alpha1.NodeRecovery{Status: tc.after}
			telling(recorder).Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, nil)
			other := after.DeepCopy()
			other.UID = "another object of the name"
			telling(recorder).Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: other}, nil)
			if len(recorder.Events) != len(tc.want) {
				t.Errorf("%d events, want %d", len(recorder.Events), len(tc.want))
			}
		})
	}
}
