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

func TestAnAgentThatHasJustBegunKeepsTheLastDryRun(t *testing.T) {
	ends := metav1.NewTime(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC))
	mirrored := v1alpha1.Finding{Reason: "ReadRefused", Severity: v1alpha1.SeverityBlocksPod, Message: "now"}
	present := v1alpha1.NodeRecoveryStatus{
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionRestartReady, Status: metav1.ConditionFalse, Reason: "ImageMissing"}},
		Findings:   []v1alpha1.Finding{{Reason: "ReadRefused", Message: "then"}, {Reason: "ImageMissing", Severity: v1alpha1.SeverityBlocksNode}},
		Forecast:   &v1alpha1.Forecast{BasedOn: 2}, SurvivesOfflineUntil: &ends, FindingsTotal: 12,
	}
	got := Project(Facts{Findings: []v1alpha1.Finding{mirrored}}, present, ends)
	if diff := cmp.Diff([]v1alpha1.Finding{present.Findings[1], mirrored}, got.Findings); diff != "" || got.FindingsTotal != 12 {
		t.Errorf("total %d, findings (-want +got):\n%s", got.FindingsTotal, diff)
	}
	if got.Forecast != present.Forecast || !got.SurvivesOfflineUntil.Equal(&ends) {
		t.Errorf("forecast %v, until %v", got.Forecast, got.SurvivesOfflineUntil)
	}
	ready := metav1.Condition{Type: v1alpha1.ConditionRestartReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonWouldComeBack}
	if got = Project(Facts{Ready: ready}, got, ends); len(got.Findings) != 0 || got.FindingsTotal != 0 || got.Forecast != nil || got.SurvivesOfflineUntil != nil {
		t.Errorf("after a dry run that found nothing: %+v", got)
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
