// Package recovery shows on a real node that what the agent reports is what happened. The
// witnesses are kubelet's and containerd's own logs.
package recovery

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rekindle.edge/test/cluster"
	"rekindle.edge/test/edgenode"
	"rekindle.edge/test/scenario"
)

const (
	node = "edge-1"
	pool = "stores"
	pods = 10
)

var (
	product *scenario.Product
	edge    *edgenode.Node
)

func TestRecovery(t *testing.T) {
	if os.Getenv("REKINDLE_E2E") == "" {
		t.Skip("needs root and minutes; run `make test-e2e`")
	}
	RegisterFailHandler(Fail)
	suite, reporter := GinkgoConfiguration()
	suite.Timeout = time.Hour
	RunSpecs(t, "Recovery", suite, reporter)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	c, err := cluster.Start(ctx, cluster.Options{Nodes: true, Log: say})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(c.Stop)

	product, err = scenario.Install(ctx, c, say)
	Expect(err).NotTo(HaveOccurred())
	Expect(product.Apply(ctx, "edge-pools.yaml")).To(Succeed())
	edge, err = product.EdgeNode(ctx, node, pool)
	Expect(err).NotTo(HaveOccurred())
	Expect(product.CreatePods(ctx, node, pods)).To(Succeed())
	Expect(product.WaitObserved(ctx, node)).To(Succeed())
})

func settle() { time.Sleep(3 * time.Second) }

// A failed spec shows what the agent said and reported.
var _ = JustAfterEach(func(ctx SpecContext) {
	if !CurrentSpecReport().Failed() || edge == nil || edge.Current() == nil {
		return
	}
	agent, err := os.ReadFile(filepath.Join(edge.Current().Logs, "agent.log"))
	say("agent.log (%v):\n%s", err, agent)
	status, err := product.Kubectl(ctx, "get", "nrec", node, "-o", "yaml")
	say("nrec (%v):\n%s", err, status)
	state, err := product.Kubectl(ctx, "get", "pods,nodes,events", "-o", "wide")
	say("pods, nodes, events (%v):\n%s", err, state)
})

func say(format string, args ...any) { GinkgoWriter.Printf(format+"\n", args...) }

// Each spec finds the node and all its pods back from whatever the one before it did.
var _ = BeforeEach(func(ctx SpecContext) {
	if edge.Current() == nil {
		_, err := edge.Boot(ctx)
		Expect(err).NotTo(HaveOccurred())
	}
	Expect(edge.WaitReady(ctx)).To(Succeed())
	Eventually(ctx, func(g Gomega) {
		w, err := edge.Current().Witness()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(len(w.Ready)).To(BeNumerically(">=", pods))
	}).WithTimeout(2 * time.Minute).Should(Succeed())
})

// remove deletes a pod of namespace default and returns when it is gone.
func remove(ctx context.Context, name string) {
	GinkgoHelper()
	pod := edgenode.WebPod(name, node)
	Expect(product.Client.Delete(ctx, pod)).To(Succeed())
	Eventually(ctx, func() bool {
		return apierrors.IsNotFound(product.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod))
	}).WithTimeout(2 * time.Minute).Should(BeTrue())
}

// restart cuts the power and boots. The agent batches what it sees of pods for a second:
// a cut sooner than that would lose what the specs count on.
func restart(ctx context.Context) *edgenode.Boot {
	GinkgoHelper()
	settle()
	Expect(edge.PowerCut(ctx)).To(Succeed())
	boot, err := edge.Boot(ctx)
	Expect(err).NotTo(HaveOccurred())
	return boot
}
