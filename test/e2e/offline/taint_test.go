package offline

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"rekindle.edge/test/edgenode"
)

// intolerant is a pod that a lost node may not keep for a moment. A toleration that matches
// nothing keeps the API server from adding its own.
func (p podMaker) intolerant() podMaker {
	for _, key := range []string{corev1.TaintNodeUnreachable, corev1.TaintNodeNotReady} {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: key, Value: "none", Effect: corev1.TaintEffectNoExecute})
	}
	return p
}

// heldTaints are those of the Node that the agent holds, as others than kubelet see them.
func heldTaints(ctx context.Context) string {
	taints, err := kubectl(ctx, "get", "--raw", "'/api/v1/nodes/"+nodeName+"?resourceVersion=0'", "|", "tr", "-d", "' \\n'", "|", "grep", "-o", `'"taints":\[[^]]*'`)
	return fmt.Sprint(taints, err)
}

func patchTaints(ctx context.Context, taints string) {
	GinkgoHelper()
	_, err := client.CoreV1().Nodes().Patch(ctx, nodeName, types.MergePatchType, []byte(`{"spec":{"taints":`+taints+`}}`), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}

var _ = Describe("A node that the cloud had given up when it was last heard", func() {
	It("keeps its pods after a restart that is cut off", func(ctx SpecContext) {
		pod := makePod("intolerant").intolerant()
		create(ctx, pod)
		waitReady(ctx, pod.Name)
		before := upstreamPods(ctx)[pod.Name]

		By("the Node is tainted, and nothing of the cloud's acts on it yet")
		shared.StopControllers()
		DeferCleanup(shared.StartControllers)
		DeferCleanup(func(ctx SpecContext) { Expect(node.RestoreWAN(ctx)).To(Succeed()) })
		const unreachable = `{"key":"node.kubernetes.io/unreachable","effect":"NoExecute"},{"key":"node.kubernetes.io/not-ready","effect":"NoExecute"}`
		DeferCleanup(func(ctx SpecContext) { patchTaints(ctx, "null") })
		patchTaints(ctx, "["+unreachable+"]")
		Eventually(ctx, heldTaints).WithArguments(ctx).WithTimeout(soon).WithPolling(poll).Should(ContainSubstring("unreachable"))

		powerCut(ctx, edgenode.WANBlackhole)
		waitReadyHere(ctx, append(allPods(), pod.Name)...)
		Expect(heldTaints(ctx)).To(ContainSubstring("unreachable"), "the Node is not tainted, nothing is shown")
		Consistently(ctx, func() string {
			phase, _ := kubectl(ctx, "get", "pod", pod.Name, "-o", "'jsonpath={.status.phase}'")
			return phase
		}).WithTimeout(5 * time.Second).WithPolling(time.Second).Should(BeEquivalentTo(corev1.PodRunning))
		Expect(runs(ctx, pod.Name, "web")).To(Equal(2))

		By("the link comes back")
		patchTaints(ctx, "null")
		Expect(node.RestoreWAN(ctx)).To(Succeed())
		inStep(ctx)
		waitReady(ctx, pod.Name)
		Expect(upstreamPods(ctx)[pod.Name].UID).To(Equal(before.UID))
	}, SpecTimeout(5*time.Minute))
})
