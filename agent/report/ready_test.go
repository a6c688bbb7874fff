package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/api/v1alpha1"
)

func TestTheVerdictInTheStatus(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC))
	ready := func(status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: v1alpha1.ConditionRestartReady, Status: status, Reason: reason, Message: "m"}
	}
	blocked := ready(metav1.ConditionFalse, v1alpha1.ReasonImageMissing)
	cases := map[string]struct {
		verdict, present metav1.Condition
		status           metav1.ConditionStatus
		reason           string
	}{
		"no dry run yet": {status: metav1.ConditionUnknown, reason: v1alpha1.ReasonNotEvaluated},
		"an agent that was restarted keeps the last verdict until it has its own": {
			present: blocked, status: metav1.ConditionFalse, reason: v1alpha1.ReasonImageMissing,
		},
		"a verdict": {
			verdict: ready(metav1.ConditionTrue, v1alpha1.ReasonWouldComeBack), present: blocked,
			status: metav1.ConditionTrue, reason: v1alpha1.ReasonWouldComeBack,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var present v1alpha1.NodeRecoveryStatus
			if tc.present.Type != "" {
				present.Conditions = []metav1.Condition{tc.present}
			}
			got := meta.FindStatusCondition(Project(Facts{Ready: tc.verdict}, present, now).Conditions, v1alpha1.ConditionRestartReady)
			if got == nil || got.Status != tc.status || got.Reason != tc.reason {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestTheForecastInTheStatus(t *testing.T) {
	ends := time.Date(2026, 12, 1, 12, 0, 0, 5, time.UTC)
	forecast := &v1alpha1.Forecast{TotalMilliseconds: 7000, BasedOn: 3}
	status := Project(Facts{SurvivesUntil: ends, Forecast: forecast}, v1alpha1.NodeRecoveryStatus{}, metav1.Now())
	if diff := cmp.Diff(forecast, status.Forecast); diff != "" || !status.SurvivesOfflineUntil.Time.Equal(ends.Truncate(time.Second)) {
		t.Errorf("until %v, forecast (-want +got):\n%s", status.SurvivesOfflineUntil, diff)
	}
	if again := Project(Facts{}, status, metav1.Now()); again.SurvivesOfflineUntil != nil || again.Forecast != nil {
		t.Errorf("what is not known any more stays: %+v", again)
	}
}
