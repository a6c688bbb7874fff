// Package wiring shows on a real node that rekindle-agent install puts the agent between
// kubelet and the API server, that a node is never worse for it, whatever of the agent is
// broken, and that uninstall leaves nothing.
package wiring

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"rekindle.edge/test/cluster"
	"rekindle.edge/test/edgenode"
	"rekindle.edge/test/scenario"
	"rekindle.edge/test/scenario/spec"
)

const (
	binary = spec.Binary
	// pods is how many API pods each node runs.
	pods = 4
	poll = spec.Poll
	soon = spec.Soon
	// worse is by how much a node whose agent is broken may be slower than a plain one.
	worse = 45 * time.Second
)

var (
	shared *cluster.Cluster
	client kubernetes.Interface
)

func TestWiring(t *testing.T) { spec.Run(t, "Wiring") }

var _ = BeforeSuite(func(ctx SpecContext) {
	shared = spec.Start(ctx)
	client = spec.Clientset(shared)
})

func say(format string, args ...any) { spec.Say(format, args...) }

// newNode makes a node that is off, without the agent but with its program at hand.
func newNode(ctx context.Context, name string) *edgenode.Node {
	GinkgoHelper()
	return spec.NewNode(ctx, shared, name)
}

// install runs rekindle-agent install and gives what it said.
func install(ctx context.Context, node *edgenode.Node) string {
	GinkgoHelper()
	return spec.Install(ctx, node)
}

func journal(node *edgenode.Node) string { return spec.Journal(node) }

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
