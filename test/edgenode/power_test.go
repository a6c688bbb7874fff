package edgenode_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/test/edgenode"
)

var _ = Describe("A power cut", func() {
	It("keeps the file that was synced and loses the one that was not", func(ctx SpecContext) {
		node, _ := firstBoot(ctx, edgenode.Options{Name: "cut"})
		// Anyone's fsync commits everybody's new names, so nobody else may write now.
		Expect(node.Systemctl(ctx, "stop", "kubelet.service", "containerd.service")).To(Succeed())
		run(ctx, node, "sh", "-c", "echo kept >/var/lib/synced; sync; echo lost >/var/lib/unsynced; echo volatile >/run/marker")
		Expect(run(ctx, node, "cat", "/var/lib/unsynced")).To(Equal("lost\n"))

		Expect(node.PowerCut(ctx)).To(Succeed())
		_, err := node.Exec(ctx, "true")
		Expect(err).To(MatchError(edgenode.ErrOff))

		_, err = node.Boot(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(run(ctx, node, "cat", "/var/lib/synced")).To(Equal("kept\n"))
		for _, lost := range []string{"/var/lib/unsynced", "/run/marker"} {
			_, err := node.Exec(ctx, "cat", lost)
			Expect(err).To(MatchError(ContainSubstring("No such file")), lost)
		}
	}, SpecTimeout(startTimeout))

	DescribeTable("is followed by pods that come back while the API server is in reach", func(ctx SpecContext, kubelet edgenode.KubeletVersion) {
		node, boot := firstBoot(ctx, edgenode.Options{Name: "pods-" + string(kubelet), Kubelet: kubelet})
		names := []string{"default/" + node.Name + "-a", "default/" + node.Name + "-b"}
		for _, suffix := range []string{"-a", "-b"} {
			createPod(ctx, edgenode.WebPod(node.Name+suffix, node.Name))
		}
		expectReady(ctx, boot, names)
		run(ctx, node, "sync")

		Expect(node.PowerCut(ctx)).To(Succeed())
		boot, err := node.Boot(ctx)
		Expect(err).NotTo(HaveOccurred())
		prober, err := node.Probe(ctx)
		Expect(err).NotTo(HaveOccurred())
		defer prober.Stop()
		expectReady(ctx, boot, names)
		for _, name := range names {
			Eventually(prober.Serving).WithContext(ctx).WithPolling(poll).Should(HaveKey(name))
		}

		witness, err := boot.Witness()
		Expect(err).NotTo(HaveOccurred())
		Expect(witness.KubeletStarts).To(HaveLen(1))
		Expect(boot.Since(witness.KubeletStarts[0])).To(BeNumerically(">", 0))
		Expect(witness.Sandboxes).To(HaveLen(2))
		for _, sandbox := range witness.Sandboxes {
			ready, ok := witness.FirstReady(sandbox.Pod)
			Expect(ok).To(BeTrue())
			serving := prober.Serving()[sandbox.Pod]
			Expect(witness.KubeletStarts[0]).To(BeTemporally("<", sandbox.Returned))
			Expect(sandbox.Returned).To(BeTemporally("<", ready))
			// The three witnesses have the same clock: a pod serves after its sandbox, and
			// kubelet asks only after that, or else within the prober's period.
			Expect(sandbox.Returned).To(BeTemporally("<", serving))
			Expect(serving).To(BeTemporally("<", ready.Add(200*time.Millisecond)))
		}

		By("killing kubelet alone")
		Expect(node.KillKubelet(ctx)).To(Succeed())
		Eventually(func() ([]time.Time, error) {
			witness, err := boot.Witness()
			return witness.KubeletStarts, err
		}).WithContext(ctx).WithPolling(poll).Should(HaveLen(2))
		Consistently(func() ([]edgenode.Sandbox, error) {
			witness, err := boot.Witness()
			return witness.Sandboxes, err
		}).WithContext(ctx).WithTimeout(3 * time.Second).WithPolling(poll).Should(HaveLen(2))

		By("reading a container's log through the API server and kubelet")
		log, err := client.CoreV1().Pods("default").GetLogs(node.Name+"-a", &corev1.PodLogOptions{}).DoRaw(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(log)).To(ContainSubstring("listening"))
	}, kubelets())
})

func createPod(ctx SpecContext, pod *corev1.Pod) {
	GinkgoHelper()
	_, err := client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		now := int64(0)
		Expect(client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})).To(Succeed())
	}, NodeTimeout(afterUse))
}

// expectReady waits until kubelet's log has each pod ready.
func expectReady(ctx SpecContext, boot *edgenode.Boot, pods []string) {
	GinkgoHelper()
	Eventually(func() (map[string][]time.Time, error) {
		witness, err := boot.Witness()
		return witness.Ready, err
	}).WithContext(ctx).WithPolling(poll).Should(SatisfyAll(HaveLen(len(pods)), HaveKey(pods[0]), HaveKey(pods[len(pods)-1])))
}
