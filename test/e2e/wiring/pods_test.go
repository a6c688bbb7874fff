package wiring

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"sigs.k8s.io/yaml"

	"rekindle.edge/test/edgenode"
	"rekindle.edge/test/scenario/spec"
)

// podName of the node's i-th API pod.
func podName(node *edgenode.Node, i int) string { return fmt.Sprintf("%s-%d", node.Name, i) }

// staticPod is the name, with its namespace, that the node's static pod has in the API.
func staticPod(node *edgenode.Node) string { return "default/static-" + node.Name }

// createPods creates the API pods of a node and waits until kubelet has seen all Ready.
func createPods(ctx context.Context, node *edgenode.Node) {
	GinkgoHelper()
	for i := range pods {
		spec.CreatePods(ctx, client, edgenode.WebPod(podName(node, i), node.Name))
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
	return spec.WaitReadyHere(ctx, node, limit-node.Current().Uptime(), strings.TrimPrefix(pod, "default/"))
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
