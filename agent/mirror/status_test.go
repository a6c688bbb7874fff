package mirror

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

func TestReport(t *testing.T) {
	steps := func(podsAge, servicesAge time.Duration) map[schema.GroupVersionResource]time.Time {
		return map[schema.GroupVersionResource]time.Time{pods: noon.Add(-podsAge), services: noon.Add(-servicesAge)}
	}
	refused := func(resource schema.GroupVersionResource, name string, warm bool) refusedRead {
		return refusedRead{snapshot.Scope{Resource: resource, Namespace: "shop", Name: name}, warm, "no"}
	}
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	type finding struct {
		Reason   string
		Severity v1alpha1.Severity
		Object   string
		Pod      string
	}
	cases := map[string]struct {
		standing standing
		status   metav1.ConditionStatus
		reason   string
		message  string
		inStep   time.Time
		findings []finding
	}{
		"all within the limit": {
			standing: standing{inStep: steps(time.Minute, 4*time.Minute)}, status: metav1.ConditionTrue, reason: v1alpha1.ReasonInStep, message: "5m0s", inStep: noon.Add(-4 * time.Minute),
		},
		"the slowest collection counts, and is named": {
			standing: standing{inStep: steps(0, 6*time.Minute)}, status: metav1.ConditionFalse, reason: v1alpha1.ReasonOutOfStep, message: "services", inStep: noon.Add(-6 * time.Minute),
		},
		"a collection that was never read": {
			standing: standing{inStep: map[schema.GroupVersionResource]time.Time{pods: noon, services: {}}}, status: metav1.ConditionUnknown, reason: v1alpha1.ReasonNotSynced, message: "services",
		},
		"another cluster comes before all else": {
			standing: standing{inStep: steps(0, 0), other: errors.New("x"), doubt: "y"}, status: metav1.ConditionFalse, reason: v1alpha1.ReasonOtherCluster, inStep: noon,
			findings: []finding{{Reason: v1alpha1.ReasonOtherCluster, Severity: v1alpha1.SeverityBlocksNode}, {Reason: v1alpha1.ReasonPodListHeld, Severity: v1alpha1.SeveritySlows}},
		},
		"a list that is not believed": {
			standing: standing{inStep: steps(0, 0), doubt: "it was restored", held: 4}, status: metav1.ConditionFalse, reason: v1alpha1.ReasonPodListHeld, message: "it was restored", inStep: noon,
			findings: []finding{{Reason: v1alpha1.ReasonPodListHeld, Severity: v1alpha1.SeveritySlows}},
		},
		"a refused warm list": {
			standing: standing{inStep: steps(0, 0), refused: []refusedRead{refused(deployments, "", true)}}, status: metav1.ConditionFalse, reason: v1alpha1.ReasonReadRefused, message: "deployments.apps", inStep: noon,
			findings: []finding{{Reason: v1alpha1.ReasonReadRefused, Severity: v1alpha1.SeveritySlows, Object: "deployments.apps"}},
		},
		"refused secrets are one finding that names none of them": {
			standing: standing{inStep: steps(0, 0), refused: []refusedRead{refused(secrets, "password-a", false), refused(secrets, "password-b", false)}},
			status:   metav1.ConditionFalse, reason: v1alpha1.ReasonReadRefused, message: "secrets", inStep: noon,
			findings: []finding{{Reason: v1alpha1.ReasonReadRefused, Severity: v1alpha1.SeverityBlocksPod, Object: "secrets"}},
		},
		"services that may not be read block the node": {
			standing: standing{inStep: steps(0, 0), refused: []refusedRead{refused(services, "", false)}}, status: metav1.ConditionFalse, reason: v1alpha1.ReasonReadRefused, inStep: noon,
			findings: []finding{{Reason: v1alpha1.ReasonReadRefused, Severity: v1alpha1.SeverityBlocksNode, Object: "services"}},
		},
		"expired tokens, and pods without": {
			standing: standing{inStep: steps(0, 0), tokens: tokenBook{replayedExpired: 2, lastExpired: noon.Add(-time.Minute), omitted: []string{"shop/web"}}},
			status:   metav1.ConditionTrue, reason: v1alpha1.ReasonInStep, inStep: noon,
			findings: []finding{{Reason: v1alpha1.ReasonTokenExpired, Severity: v1alpha1.SeveritySlows}, {Reason: v1alpha1.ReasonTokensOmitted, Severity: v1alpha1.SeverityBlocksPod, Pod: "shop/web"}},
		},
		"a replay of long ago is no finding": {
			standing: standing{inStep: steps(0, 0), tokens: tokenBook{replayedExpired: 2, lastExpired: noon.Add(-2 * time.Hour)}}, status: metav1.ConditionTrue, reason: v1alpha1.ReasonInStep, inStep: noon,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.standing.now, tc.standing.staleness = noon, 5*time.Minute
			got := tc.standing.report()
			if got.Fresh.Status != tc.status || got.Fresh.Reason != tc.reason || !strings.Contains(got.Fresh.Message, tc.message) || !got.InStep.Equal(tc.inStep) {
				t.Errorf("got %+v, in step at %s", got.Fresh, got.InStep)
			}
			var findings []finding
			for _, f := range got.Findings {
				findings = append(findings, finding{f.Reason, f.Severity, f.Object, f.Pod})
				if strings.Contains(f.Message, "password") || f.Message == "" || len(f.Message) > 256 {
					t.Errorf("message %q has %d characters", f.Message, len(f.Message))
				}
			}
			if diff := cmp.Diff(tc.findings, findings); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}
