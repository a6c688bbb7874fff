package edgenode_test

import (
	"errors"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes"

	"rekindle.edge/test/cluster"
	"rekindle.edge/test/edgenode"
)

const (
	// startTimeout bounds what takes a node some seconds on an idle machine.
	startTimeout = 2 * time.Minute
	poll         = 200 * time.Millisecond
	// afterUse bounds the end of a node.
	afterUse = time.Minute
)

var (
	shared *cluster.Cluster
	client kubernetes.Interface
)

func TestNodes(t *testing.T) {
	if os.Getenv("REKINDLE_E2E") == "" {
		t.Skip("real nodes need root and make test-e2e (REKINDLE_E2E=1)")
	}
	RegisterFailHandler(Fail)
	RunSpecs(t, "Edge nodes")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	tools, err := cluster.FindTools("")
	Expect(err).NotTo(HaveOccurred())
	skipUnsupported(edgenode.Check(tools, edgenode.KubeletNewest))
	shared, err = cluster.Start(ctx, cluster.Options{Nodes: true, Log: GinkgoT().Logf})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(shared.Stop()).To(Succeed()) })
	client, err = kubernetes.NewForConfig(shared.Admin())
	Expect(err).NotTo(HaveOccurred())
})

// kubelets are those that the specs run with.
func kubelets() []TableEntry {
	entries := []TableEntry{Entry("the newest kubelet", edgenode.KubeletNewest, SpecTimeout(startTimeout))}
	if os.Getenv("REKINDLE_FULL") != "" {
		entries = append(entries, Entry("the oldest kubelet", edgenode.KubeletOldest, SpecTimeout(startTimeout)))
	}
	return entries
}

// firstBoot makes a node that is Ready, and takes its power when the spec ends.
func firstBoot(ctx SpecContext, options edgenode.Options) (*edgenode.Node, *edgenode.Boot) {
	GinkgoHelper()
	options.Log = GinkgoT().Logf
	node := newNode(ctx, options)
	boot, err := node.FirstBoot(ctx)
	Expect(err).NotTo(HaveOccurred())
	return node, boot
}

// newNode makes a node that is off, or skips the spec where that is impossible.
func newNode(ctx SpecContext, options edgenode.Options) *edgenode.Node {
	GinkgoHelper()
	node, err := edgenode.New(ctx, shared, options)
	skipUnsupported(err)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		if node.Current() != nil {
			Expect(node.PowerCut(ctx)).To(Succeed())
		}
	}, NodeTimeout(afterUse))
	return node
}

// skipUnsupported skips, with the reason, what this machine cannot run.
func skipUnsupported(err error) {
	GinkgoHelper()
	var unsupported *edgenode.UnsupportedError
	if errors.As(err, &unsupported) {
		Skip(unsupported.Error())
	}
}

// run runs a command on the node that must work, and gives what it printed.
func run(ctx SpecContext, node *edgenode.Node, command ...string) string {
	GinkgoHelper()
	out, err := node.Exec(ctx, command...)
	Expect(err).NotTo(HaveOccurred())
	return out
}
