// Package warmup shows on a real node that what a restart needs beside the API is kept:
// node files, and images.
package warmup

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/cluster"
	"rekindle.edge/test/edgenode"
	"rekindle.edge/test/scenario/spec"
)

const (
	binary   = spec.Binary
	nodeName = "edge-1"
	poll     = spec.Poll
	soon     = spec.Soon
)

var (
	shared *cluster.Cluster
	admin  client.Client
	kube   kubernetes.Interface
	node   *edgenode.Node
)

func TestWarmup(t *testing.T) { spec.Run(t, "Warm-up") }

var _ = BeforeSuite(func(ctx SpecContext) {
	shared = spec.Start(ctx, spec.CRDs, spec.RBAC)
	admin, kube = spec.Client(shared), spec.Clientset(shared)
	node = spec.NewNode(ctx, shared, nodeName)
	spec.FirstBoot(ctx, node)
	spec.Install(ctx, node)
	serveImages(ctx)
})

var _ = JustAfterEach(func() {
	if CurrentSpecReport().Failed() && node != nil {
		say("%s", journal())
	}
})

func say(format string, args ...any) { spec.Say(format, args...) }

func journal() string { return spec.Journal(node) }

// log is the end of one of the witnesses' logs of this boot.
func log(name string) string {
	all := spec.Log(node, name)
	return all[max(0, len(all)-1<<20):]
}

// sh runs a script on the node and gives what it prints.
func sh(ctx context.Context, script string, args ...any) string {
	GinkgoHelper()
	return spec.Shell(ctx, node, fmt.Sprintf(script, args...))
}

// put writes a file on the node.
func put(ctx context.Context, path, mode, content string) {
	GinkgoHelper()
	_, err := node.ExecInput(ctx, strings.NewReader(content), "sh", "-ec",
		fmt.Sprintf("mkdir -p %s; cat >%s; chmod %s %s", filepath.Dir(path), path, mode, path))
	Expect(err).NotTo(HaveOccurred())
}

// policy gives the node its part of a policy, and waits until the agent has taken it over.
func policy(ctx context.Context, part v1alpha1.NodeRecoverySpec) {
	GinkgoHelper()
	spec.Policy(ctx, admin, node, part)
}

func nodeRecovery(ctx context.Context) *v1alpha1.NodeRecovery {
	GinkgoHelper()
	return spec.NodeRecovery(ctx, admin, nodeName)
}

// create makes pods, until the end of the spec, and waits until the API server has them Ready.
func create(ctx context.Context, pods ...*corev1.Pod) {
	GinkgoHelper()
	spec.CreatePods(ctx, kube, pods...)
	DeferCleanup(func(ctx SpecContext) {
		Expect(node.RestoreWAN(ctx)).To(Succeed())
		for _, pod := range pods {
			Expect(client.IgnoreNotFound(admin.Delete(ctx, pod, client.GracePeriodSeconds(0)))).To(Succeed())
		}
	})
	spec.WaitPods(ctx, kube, soon, journal, spec.Names(pods...)...)
}

// powerCut takes the power once all changes are on the disk, and boots cut off.
func powerCut(ctx context.Context) {
	GinkgoHelper()
	spec.Settle(ctx, node)
	spec.PowerCut(ctx, node, edgenode.WANBlackhole)
}

// readyHere says whether kubelet's log has a pod Ready in this boot.
func readyHere(name string) (bool, error) {
	count, err := spec.ReadyHere(node, name)
	return count == 1, err
}
