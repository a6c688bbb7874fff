package report

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/api/v1alpha1"
)

func TestServing(t *testing.T) {
	tests := map[string]struct {
		serving    metav1.Condition
		wantStatus metav1.ConditionStatus
		wantReason string
	}{
		"an agent that only measures is not installed": {metav1.Condition{}, metav1.ConditionFalse, v1alpha1.ReasonNotInstalled},
		"kubelet was not looked at yet":                {ServingUnknown(), metav1.ConditionUnknown, v1alpha1.ReasonNotEvaluated},
		"kubelet talks to the agent":                   {Serving(nil), metav1.ConditionTrue, v1alpha1.ReasonKubeletServed},
		"the policy wants kubelet left alone":          {ServingObserve(), metav1.ConditionFalse, v1alpha1.ReasonObserveOnly},
		"kubelet runs without the agent":               {Serving(errors.New("why")), metav1.ConditionFalse, v1alpha1.ReasonUnhooked},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			status := Project(Facts{Serving: tc.serving}, v1alpha1.NodeRecoveryStatus{}, metav1.Now())
			got := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionLocalAPIServing)
			if got == nil || got.Status != tc.wantStatus || got.Reason != tc.wantReason || got.Message == "" {
				t.Errorf("got %+v", got)
			}
		})
	}
}
