// Package wiring shows on a real node that rekindle-agent install puts the agent between
// kubelet and the API server, that a node is never worse for it, whatever of the agent is
// broken, and that uninstall leaves nothing.
package wiring

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"rekindle.edge/test/cluster"
	"rekindle.edge/test/edgenode"
	"rekindle.edge/test/scenario"
)

const (
	binary = "/usr/local/bin/rekindle-agent"
	// pods is how many API pods each node runs.
	pods = 4
	poll = 100 * time.Millisecond
	// soon bounds what takes a healthy node some seconds on an idle machine.
	soon = time.Minute
	// worse is by how much a node whose agent is broken may be slower than a plain one.
	worse = 45 * time.Second
)

var (
	shared *cluster.Cluster
	client kubernetes.Interface
)

func TestWiring(t *testing.T) {
	if os.Getenv("REKINDLE_E2E") == "" {
		t.Skip("needs root and minutes; run `make test-e2e`")
	}
	RegisterFailHandler(Fail)
	suite, reporter := GinkgoConfiguration()
	suite.Timeout = time.Hour
	RunSpecs(t, "Wiring", suite, reporter)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	shared, err = cluster.Start(ctx, cluster.Options{Nodes: true, Log: say})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(shared.Stop()).To(Succeed()) })
	client, err = kubernetes.NewForConfig(shared.Admin())
	Expect(err).NotTo(HaveOccurred())
})

func say(format string, args ...any) { GinkgoWriter.Printf(format+"\n", args...) }

// agentBinary is the program under test.
func agentBinary() string {
	GinkgoHelper()
	path, err := scenario.AgentBinary()
	Expect(err).NotTo(HaveOccurred())
	return path
}

// newNode makes a node that is off, without the agent but with its program at hand.
// $REKINDLE_KUBELET picks its kubelet, newest or oldest.
func newNode(ctx context.Context, name string) *edgenode.Node {
	GinkgoHelper()
	node, err := edgenode.New(ctx, shared, edgenode.Options{
		Name:    name,
		Kubelet: edgenode.KubeletVersion(os.Getenv("REKINDLE_KUBELET")),
		Agent:   &edgenode.Agent{Binary: agentBinary()},
		Log:     say,
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		if node.Current() != nil {
			Expect(node.PowerCut(ctx)).To(Succeed())
		}
	})
	return node
}

// install runs rekindle-agent install and gives what it said.
func install(ctx context.Context, node *edgenode.Node) string {
	GinkgoHelper()
	output, err := node.Exec(ctx, binary, "install")
	Expect(err).NotTo(HaveOccurred(), "%s", journal(node))
	say("install: %s", output)
	return output
}

func journal(node *edgenode.Node) string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	output, err := node.Exec(ctx, "journalctl", "--no-pager", "-n", "80", "-o", "short-precise")
	agent, readErr := os.ReadFile(filepath.Join(node.Current().Logs, "agent.log"))
	return fmt.Sprintf("%s\n%v\nagent.log:\n%s\n%v", output, err, agent, readErr)
}

// waitPodsReady waits until the API server has all of the node's API pods as Ready.
func waitPodsReady(ctx context.Context, node *edgenode.Node) {
	GinkgoHelper()
	ready := func() (int, error) {
		list, err := client.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{
			FieldSelector: "spec.nodeName=" + node.Name, LabelSelector: "app!=static",
		})
		if err != nil {
			return 0, err
		}
		count := 0
		for _, pod := range list.Items {
			if scenario.Ready(&pod) {
				count++
			}
		}
		return count, nil
	}
	Eventually(ctx, ready).WithTimeout(soon).WithPolling(poll).Should(Equal(pods))
}

// hostKubectl runs kubectl beside the API server and gives all that it prints.
func hostKubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	output, err := exec.CommandContext(ctx, filepath.Join(shared.Tools(), "kubectl"), args...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", output)
	return string(output)
}
