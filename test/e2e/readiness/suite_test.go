// Package readiness shows on a real node that the verdict before an outage is what the
// outage then brings.
package readiness

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"rekindle.edge/agent/doctor"
	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/cluster"
	"rekindle.edge/test/edgenode"
	"rekindle.edge/test/scenario"
)

const (
	binary   = "/usr/local/bin/rekindle-agent"
	nodeName = "edge-1"
	poll     = 200 * time.Millisecond
	// soon bounds what takes a healthy node some seconds on an idle machine.
	soon = 2 * time.Minute
	// batch is more than the agent takes to write changes to the disk.
	batch = 5 * time.Second
	// flip is how soon the verdict must follow its cause.
	flip = 5 * time.Second
	// target of a recovery; what must not come back is judged at three times that.
	target = 30 * time.Second
)

var (
	shared *cluster.Cluster
	client kubernetes.Interface
	node   *edgenode.Node
)

func TestReadiness(t *testing.T) {
	if os.Getenv("REKINDLE_E2E") == "" || os.Getenv("REKINDLE_FULL") == "" {
		t.Skip("needs root and minutes; run `make test-e2e FULL=1`")
	}
	RegisterFailHandler(Fail)
	suite, reporter := GinkgoConfiguration()
	suite.Timeout = time.Hour
	RunSpecs(t, "Readiness", suite, reporter)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	shared, err = cluster.Start(ctx, cluster.Options{Nodes: true, Log: say})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(shared.Stop()).To(Succeed()) })
	client, err = kubernetes.NewForConfig(shared.Admin())
	Expect(err).NotTo(HaveOccurred())
	kubectl(ctx, "apply", "-f", "../../../config/rbac/node.yaml")
	kubectl(ctx, "apply", "-k", "../../../config/crd")

	agent, err := scenario.AgentBinary()
	Expect(err).NotTo(HaveOccurred())
	node, err = edgenode.New(ctx, shared, edgenode.Options{
		Name: nodeName, Kubelet: edgenode.KubeletVersion(os.Getenv("REKINDLE_KUBELET")),
		Agent: &edgenode.Agent{Binary: agent}, Log: say,
	})
	Expect(err).NotTo(HaveOccurred())
	_, err = node.FirstBoot(ctx)
	Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(GinkgoT().TempDir(), "recovery.yaml")
	Expect(os.WriteFile(path, []byte("apiVersion: rekindle.edge/v1alpha1\nkind: NodeRecovery\nmetadata: {name: "+nodeName+"}\nspec: {policyName: edge, policyGeneration: 1}\n"), 0o600)).To(Succeed())
	kubectl(ctx, "apply", "-f", path)
	shell(ctx, binary+" install")
})

var _ = JustAfterEach(func() {
	if CurrentSpecReport().Failed() && node != nil {
		say("%s", journal())
	}
})

func say(format string, args ...any) { GinkgoWriter.Printf(format+"\n", args...) }

func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, filepath.Join(shared.Tools(), "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+shared.AdminKubeconfig())
	said, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", said)
	return string(said)
}

// shell runs a line on the node.
func shell(ctx context.Context, line string) string {
	GinkgoHelper()
	output, err := node.Exec(ctx, "/bin/sh", "-c", line)
	Expect(err).NotTo(HaveOccurred(), "%s", output)
	return strings.TrimSpace(output)
}

func journal() string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if node.Current() == nil {
		return "the node is off"
	}
	output, err := node.Exec(ctx, "journalctl", "--no-pager", "-n", "200", "-o", "short-precise", "-u", "rekindle-agent")
	return fmt.Sprintf("%s\n%v", output, err)
}

// verdict asks doctor on the node, and checks that its exit code fits.
func verdict(ctx context.Context) doctor.Report {
	GinkgoHelper()
	output := shell(ctx, binary+" doctor -o json; echo $?")
	end := strings.LastIndexByte(output, '\n')
	var report doctor.Report
	Expect(json.Unmarshal([]byte(output[:end]), &report)).To(Succeed(), "%s", output)
	Expect(output[end+1:]).To(Equal(fmt.Sprint(report.ExitCode())))
	return report
}

// blocked are the reasons by pod, in namespace default, and those of the node under "".
func blocked(report doctor.Report) map[string]string {
	reasons := map[string]string{}
	for _, finding := range report.Findings {
		if name := strings.TrimPrefix(finding.Pod, metav1.NamespaceDefault+"/"); finding.Severity != v1alpha1.SeveritySlows && reasons[name] == "" {
			reasons[name] = finding.Reason
		}
	}
	return reasons
}

// isReady says whether the API server has a pod as it should be before the cut.
func isReady(ctx context.Context, name string, want corev1.PodPhase) (bool, error) {
	pod, err := client.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	return pod.Status.Phase == want && (want != corev1.PodRunning || scenario.Ready(pod)), nil
}
