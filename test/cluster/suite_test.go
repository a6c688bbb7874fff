package cluster_test

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"rekindle.edge/test/cluster"
)

// startTimeout bounds a spec that starts a control plane, ten seconds on an idle machine.
const startTimeout = 2 * time.Minute

func TestCluster(t *testing.T) {
	if os.Getenv("REKINDLE_E2E") == "" {
		t.Skip("a cluster for nodes needs root and make test-e2e (REKINDLE_E2E=1)")
	}
	RegisterFailHandler(Fail)
	RunSpecs(t, "Cluster")
}

// start starts a cluster that ends with the spec.
func start(ctx SpecContext, nodes bool) *cluster.Cluster {
	GinkgoHelper()
	c, err := cluster.Start(ctx, cluster.Options{Nodes: nodes, Log: GinkgoT().Logf})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(c.Stop()).To(Succeed()) })
	return c
}

func clientset(config *rest.Config) kubernetes.Interface {
	GinkgoHelper()
	client, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	return client
}
