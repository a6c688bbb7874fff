package readiness

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/agent/doctor"
	"rekindle.edge/api/v1alpha1"
)

// verdict asks doctor on the node, and checks that its exit code fits.
func verdict(ctx context.Context) doctor.Report {
	GinkgoHelper()
	output := shell(ctx, binary+" doctor -o json; echo $?")
	end := strings.LastIndexByte(output, '\n')
	Expect(end).To(BeNumerically(">", 0), "%s", output)
	var report doctor.Report
	Expect(json.Unmarshal([]byte(output[:end]), &report)).To(Succeed(), "%s", output)
	Expect(output[end+1:]).To(Equal(fmt.Sprint(report.ExitCode())))
	return report
}

// blocking are the reasons of a report by pod of namespace default, and those of the node
// as a whole under "".
func blocking(report doctor.Report) map[string][]string {
	reasons := map[string][]string{}
	for _, finding := range report.Findings {
		name := strings.TrimPrefix(finding.Pod, metav1.NamespaceDefault+"/")
		if finding.Severity != v1alpha1.SeveritySlows && !slices.Contains(reasons[name], finding.Reason) {
			reasons[name] = append(reasons[name], finding.Reason)
		}
	}
	return reasons
}

// status is what the API server has of the verdict.
func status(ctx context.Context) v1alpha1.NodeRecoveryStatus {
	GinkgoHelper()
	var recovery v1alpha1.NodeRecovery
	Expect(json.Unmarshal([]byte(kubectl(ctx, "get", "noderecovery", nodeName, "-o", "json")), &recovery)).To(Succeed())
	return recovery.Status
}

// leading is the condition RestartReady of the status with its leading finding, in words
// such as "False ImageMissing default/web example.com/web:1".
func leading(ctx context.Context) string {
	GinkgoHelper()
	s := status(ctx)
	ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionRestartReady)
	if ready == nil {
		return ""
	}
	words := []string{string(ready.Status), ready.Reason}
	if ready.Status == metav1.ConditionFalse && len(s.Findings) > 0 {
		words = append(words, s.Findings[0].Pod, s.Findings[0].Object)
	}
	return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
}
