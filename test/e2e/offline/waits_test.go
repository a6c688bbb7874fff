package offline

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/test/scenario"
	"rekindle.edge/test/scenario/spec"
)

// untainted waits until the cloud has seen that the node is back: it would end pods that
// are made before.
func untainted(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		n, err := client.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(n.Spec.Taints).To(BeEmpty())
	}).WithTimeout(soon).WithPolling(poll).Should(Succeed(), journal)
}

// inStep waits until the API server has the pods as they run on the node, all Ready.
func inStep(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		running, err := node.Exec(ctx, "ctr", "-n", "k8s.io", "tasks", "list", "-q")
		g.Expect(err).NotTo(HaveOccurred())
		for _, name := range allPods() {
			pod, err := client.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(scenario.Ready(pod)).To(BeTrue(), "%s", name)
			id := strings.TrimPrefix(pod.Status.ContainerStatuses[0].ContainerID, "containerd://")
			g.Expect(running).To(ContainSubstring(id), "%s", name)
		}
	}).WithTimeout(soon).WithPolling(time.Second).Should(Succeed(), journal)
}

// waitReadyHere waits until kubelet's log has the pods Ready in this boot, and gives when
// the last was, since kernel start.
func waitReadyHere(ctx context.Context, names ...string) time.Duration {
	GinkgoHelper()
	return spec.WaitReadyHere(ctx, node, soon, names...)
}

// waitGone waits until the API server has no such pod.
func waitGone(ctx context.Context, name string) {
	GinkgoHelper()
	Eventually(ctx, upstreamPods).WithArguments(ctx).WithTimeout(soon).WithPolling(poll).ShouldNot(HaveKey(name))
}

// removePod deletes a pod at once and returns when it is gone.
func removePod(ctx context.Context, name string) {
	GinkgoHelper()
	now := int64(0)
	err := client.CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	Expect(apierrors.IsNotFound(err) || err == nil).To(BeTrue(), "%v", err)
	waitGone(ctx, name)
}

// waitReady waits until the API server has these pods Ready.
func waitReady(ctx context.Context, names ...string) {
	GinkgoHelper()
	spec.WaitPods(ctx, client, soon, journal, names...)
}
