package report

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

func TestProjectSnapshot(t *testing.T) {
	at := func(d time.Duration, objects int32) *v1alpha1.SnapshotStatus {
		return &v1alpha1.SnapshotStatus{Generation: 3, Objects: objects, Bytes: 1000, InStepTime: &metav1.Time{Time: noon.Add(d)}}
	}
	fresh := metav1.Condition{Type: v1alpha1.ConditionSnapshotFresh, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonInStep, Message: "m"}
	facts := Facts{Fresh: fresh, Snapshot: at(0, 10)}
	present := Project(facts, v1alpha1.NodeRecoveryStatus{}, noon)
	cases := map[string]struct {
		facts Facts
		want  *v1alpha1.SnapshotStatus
	}{
		"numbers alone are not worth a write":          {Facts{Fresh: fresh, Snapshot: at(59*time.Minute, 12)}, at(0, 10)},
		"many more objects are":                        {Facts{Fresh: fresh, Snapshot: at(time.Minute, 14)}, at(time.Minute, 14)},
		"and many fewer":                               {Facts{Fresh: fresh, Snapshot: at(time.Minute, 7)}, at(time.Minute, 7)},
		"after an hour they are":                       {Facts{Fresh: fresh, Snapshot: at(time.Hour, 12)}, at(time.Hour, 12)},
		"they ride along with a change of a condition": {Facts{Fresh: metav1.Condition{Type: fresh.Type, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonOutOfStep}, Snapshot: at(time.Minute, 12)}, at(time.Minute, 12)},
		"and with a finding":                           {Facts{Fresh: fresh, Snapshot: at(time.Minute, 12), Findings: []v1alpha1.Finding{{Reason: "R", Severity: v1alpha1.SeveritySlows}}}, at(time.Minute, 12)},
		"and with a spec that is taken over":           {Facts{Fresh: fresh, Snapshot: at(time.Minute, 12), Spec: &snapshot.Spec{Generation: 2}}, at(time.Minute, 12)},
		"a clock that went back is written":            {Facts{Fresh: fresh, Snapshot: at(-time.Minute, 12)}, at(-time.Minute, 12)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Project(tc.facts, present, metav1.NewTime(noon.Add(2*time.Hour)))
			if diff := cmp.Diff(tc.want, got.Snapshot); diff != "" {
				t.Errorf("snapshot (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWorst(t *testing.T) {
	var findings []v1alpha1.Finding
	for range 8 {
		findings = append(findings, v1alpha1.Finding{Reason: "Slow", Severity: v1alpha1.SeveritySlows})
	}
	findings = append(findings, v1alpha1.Finding{Reason: "Pod", Severity: v1alpha1.SeverityBlocksPod, Message: strings.Repeat("m", 300), Object: strings.Repeat("o", 300)},
		v1alpha1.Finding{Reason: "Node", Severity: v1alpha1.SeverityBlocksNode}, v1alpha1.Finding{Reason: "Last", Severity: v1alpha1.SeveritySlows})
	got := Project(Facts{Findings: findings}, v1alpha1.NodeRecoveryStatus{}, noon)
	if got.FindingsTotal != 11 || len(got.Findings) != 10 {
		t.Fatalf("%d findings of %d", len(got.Findings), got.FindingsTotal)
	}
	if got.Findings[0].Reason != "Node" || got.Findings[1].Reason != "Pod" || got.Findings[9].Reason != "Slow" {
		t.Errorf("order %+v", got.Findings)
	}
	if pod := got.Findings[1]; len(pod.Message) != 256 || len(pod.Object) != 256 {
		t.Errorf("message of %d, object of %d characters", len(pod.Message), len(pod.Object))
	}
	if findings[8].Message != strings.Repeat("m", 300) {
		t.Error("the findings themselves were changed")
	}
}
