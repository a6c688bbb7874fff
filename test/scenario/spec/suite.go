// Package spec is what the suites of specs on real nodes have in common: a cluster, nodes
// with the agent installed, a policy, and waiting by witnesses that are none of the
// product's. Its functions fail the running spec.
package spec

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/cluster"
	"rekindle.edge/test/internal/lab"
)

const (
	// Soon bounds what takes a healthy node some seconds on an idle machine.
	Soon = time.Minute
	// Poll is the pause between two looks.
	Poll = 200 * time.Millisecond
)

// Manifests of the product, for Start. RBAC is what a node may read beside what every kubelet
// may, CRDs are where it reports to.
const (
	RBAC = "config/rbac/node.yaml"
	CRDs = "config/crd/bases"
)

// Run runs the suite if it is asked for.
func Run(t *testing.T, name string) {
	if os.Getenv("REKINDLE_E2E") == "" {
		t.Skip("needs root and minutes; run `make test-e2e`")
	}
	RegisterFailHandler(Fail)
	suite, reporter := GinkgoConfiguration()
	suite.Timeout = time.Hour
	RunSpecs(t, name, suite, reporter)
}

// Full skips what is not of the core, unless everything is asked for.
func Full() {
	if os.Getenv("REKINDLE_FULL") == "" {
		Skip("not of the core; run `make test-e2e FULL=1`")
	}
}

// Say writes a line that is shown when the spec fails, or with -ginkgo.v.
func Say(format string, args ...any) { GinkgoWriter.Printf(format+"\n", args...) }

// Start starts a cluster for the suite, with manifests of the product applied, which are
// paths in its repository.
func Start(ctx context.Context, manifests ...string) *cluster.Cluster {
	GinkgoHelper()
	c, err := cluster.Start(ctx, cluster.Options{Nodes: true, Log: Say})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(c.Stop()).To(Succeed()) })
	root, err := lab.ModuleRoot()
	Expect(err).NotTo(HaveOccurred())
	for _, manifest := range manifests {
		Kubectl(ctx, c, "", "apply", "-f", filepath.Join(root, manifest))
	}
	return c
}

// Kubectl runs kubectl as the cluster's administrator and gives all that it prints.
func Kubectl(ctx context.Context, c *cluster.Cluster, stdin string, args ...string) string {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, filepath.Join(c.Tools(), "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.AdminKubeconfig())
	cmd.Stdin = strings.NewReader(stdin)
	said, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "kubectl %s: %s", strings.Join(args, " "), said)
	return string(said)
}

// Clientset is the administrator's.
func Clientset(c *cluster.Cluster) kubernetes.Interface {
	GinkgoHelper()
	client, err := kubernetes.NewForConfig(c.Admin())
	Expect(err).NotTo(HaveOccurred())
	return client
}

// Client is the administrator's, for the product's kinds too.
func Client(c *cluster.Cluster) ctrl.Client {
	GinkgoHelper()
	Expect(v1alpha1.AddToScheme(scheme.Scheme)).To(Succeed())
	client, err := ctrl.New(c.Admin(), ctrl.Options{Scheme: scheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
	return client
}
