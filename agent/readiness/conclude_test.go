package readiness

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/api/v1alpha1"
)

func TestConclude(t *testing.T) {
	slow := v1alpha1.Finding{Reason: "A", Severity: v1alpha1.SeveritySlows}
	blocked := v1alpha1.Finding{Reason: "B", Severity: v1alpha1.SeverityBlocksPod, Pod: "shop/web", Object: "i", Message: "m"}
	all := v1alpha1.Finding{Reason: "C", Severity: v1alpha1.SeverityBlocksNode}
	cases := map[string]struct {
		findings  []v1alpha1.Finding
		invisible []string
		status    metav1.ConditionStatus
		reason    string
		says      string
	}{
		"nothing found":                     {status: metav1.ConditionTrue, reason: v1alpha1.ReasonWouldComeBack, says: "come back by itself"},
		"what only slows":                   {findings: []v1alpha1.Finding{slow}, status: metav1.ConditionTrue, reason: v1alpha1.ReasonWouldComeBack, says: "1 finding may"},
		"a pod that is blocked":             {findings: []v1alpha1.Finding{slow, blocked}, status: metav1.ConditionFalse, reason: "B", says: "1 finding would"},
		"the pod and the object lead":       {findings: []v1alpha1.Finding{blocked}, status: metav1.ConditionFalse, reason: "B", says: "shop/web i: m"},
		"the node comes before its pods":    {findings: []v1alpha1.Finding{blocked, all}, status: metav1.ConditionFalse, reason: "C", says: "2 findings would"},
		"what is told twice counts once":    {findings: []v1alpha1.Finding{blocked, blocked}, status: metav1.ConditionFalse, reason: "B", says: "1 finding would"},
		"something was not visible":         {invisible: []string{"the runtime"}, findings: []v1alpha1.Finding{slow}, status: metav1.ConditionUnknown, reason: v1alpha1.ReasonNotVisible, says: "the runtime"},
		"what blocks is known all the same": {invisible: []string{"the runtime"}, findings: []v1alpha1.Finding{blocked}, status: metav1.ConditionFalse, reason: "B", says: "1 finding"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Conclude(Sort(tc.findings), tc.invisible)
			if got.Type != v1alpha1.ConditionRestartReady || got.Status != tc.status || got.Reason != tc.reason || !strings.Contains(got.Message, tc.says) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestSurvivesUntil(t *testing.T) {
	ends := noon.Add(time.Hour)
	certificate := Certificate{NotBefore: noon.Add(-time.Hour), NotAfter: noon.Add(time.Minute)}
	cases := map[string]struct {
		node Node
		want time.Time
	}{
		"nothing is known to run out":                  {},
		"kubelet's certificate":                        {node: Node{Certificate: certificate, Authority: Certificate{NotAfter: ends}}, want: noon.Add(time.Minute)},
		"the CA of the API server":                     {node: Node{Authority: Certificate{NotAfter: ends}}, want: ends},
		"the credential of the pod network":            {node: Node{CNI: CNI{CredentialEnds: ends}}, want: ends},
		"the first of them":                            {node: Node{Certificate: certificate, CNI: CNI{CredentialEnds: noon}}, want: noon},
		"a network that asks the API server is broken": {node: Node{Certificate: certificate, CNI: CNI{Asks: "calico"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := SurvivesUntil(Facts{Now: noon, Node: tc.node}); !got.Equal(tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
