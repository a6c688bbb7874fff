package wiring

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"rekindle.edge/test/edgenode"
)

// podName of the node's i-th API pod.
func podName(node *edgenode.Node, i int) string { return fmt.Sprintf("%s-%d", node.Name, i) }

// staticPod is the name, with its namespace, that the node's static pod has in the API.
func staticPod(node *edgenode.Node) string { return "default/static-" + node.Name }

// createPods creates the API pods of a node and waits until kubelet has seen all Ready.
func createPods(ctx context.Context, node *edgenode.Node) {
	GinkgoHelper()
	for i := range pods {
		pod := edgenode.WebPod(podName(node, i), node.Name)
		_, err := client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	waitAllReady(ctx, node, soon)
	waitPodsReady(ctx, node)
}

// writeStaticPod gives kubelet a pod that needs no API server. The node must be off.
func writeStaticPod(root string) error {
	pod := edgenode.WebPod("static", "")
	pod.APIVersion, pod.Kind = "v1", "Pod"
	manifest, err := yaml.Marshal(pod)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, "etc/kubernetes/manifests/static.yaml"), manifest, 0o644)
}

// waitReady waits until kubelet logs that the pod is Ready in this boot, at most until
// limit after kernel start, and gives when it was.
func waitReady(ctx context.Context, node *edgenode.Node, pod string, limit time.Duration) time.Duration {
	GinkgoHelper()
	boot := node.Current()
	var at time.Duration
	Eventually(ctx, func(g Gomega) {
		witness, err := boot.Witness()
		g.Expect(err).NotTo(HaveOccurred())
		first, ok := witness.FirstReady(pod)
		g.Expect(ok).To(BeTrue(), "%s is not Ready", pod)
		at = boot.Since(first).Round(time.Millisecond)
	}).WithTimeout(limit-boot.Uptime()).WithPolling(poll).Should(Succeed(), func() string { return journal(node) })
	return at
}

// waitAllReady is waitReady for the last of the node's API pods.
func waitAllReady(ctx context.Context, node *edgenode.Node, limit time.Duration) time.Duration {
	GinkgoHelper()
	var last time.Duration
	for i := range pods {
		last = max(last, waitReady(ctx, node, "default/"+podName(node, i), limit))
	}
	return last
}
