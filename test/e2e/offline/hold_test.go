package offline

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/edgenode"
	"rekindle.edge/test/scenario/spec"
)

// setAttachedVolumes gives the node a policy, and returns when the agent has taken it over.
func setAttachedVolumes(ctx context.Context, mode v1alpha1.OfflineAttachedVolumes) {
	GinkgoHelper()
	spec.Policy(ctx, recoveries, node, v1alpha1.NodeRecoverySpec{Offline: v1alpha1.Offline{AttachedVolumes: mode}})
}

func nodeRecovery(ctx context.Context) *v1alpha1.NodeRecovery {
	GinkgoHelper()
	return spec.NodeRecovery(ctx, recoveries, nodeName)
}

// lateLink cuts the power and boots cut off, calls meanwhile while the node is off, and brings
// the link up when kubelet has run for a while.
func lateLink(ctx context.Context, meanwhile func(context.Context)) {
	GinkgoHelper()
	spec.Settle(ctx, node)
	Expect(node.PowerCut(ctx)).To(Succeed())
	Expect(node.CutWAN(ctx, edgenode.WANLinkDown)).To(Succeed())
	meanwhile(ctx)
	spec.Boot(ctx, node)
	kubelet := waitKubelet(ctx)
	waitReadyHere(ctx, allPods()...)
	Consistently(ctx, func(g Gomega) {
		g.Expect(published(ctx)).To(BeZero())
		g.Expect(started(g)).To(BeFalse())
	}).WithTimeout(time.Until(kubelet.Add(linkLate))).WithPolling(poll).Should(Succeed(), "the pod did not wait for the API server")
	Expect(node.RestoreWAN(ctx)).To(Succeed())
}

var _ = Describe("A pod with a volume that is attached to one node at a time", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		installCSI(ctx)
		createVolume(ctx)
		setAttachedVolumes(ctx, v1alpha1.AttachedVolumesHold)
		DeferCleanup(func(ctx SpecContext) { setAttachedVolumes(ctx, v1alpha1.AttachedVolumesHold) })
		inStep(ctx)
		createStateful(ctx)
	}, NodeTimeout(3*time.Minute))

	It("waits while the node is cut off, and starts once the link is back", func(ctx SpecContext) {
		lateLink(ctx, func(context.Context) {})
		back := time.Now()
		waitReadyHere(ctx, csiPod)
		AddReportEntry("from the link to Ready", time.Since(back).Round(10*time.Millisecond).String())
		Expect(published(ctx)).To(Equal(1))
		say("%s", shell(ctx, "grep "+csiPod+" /var/log/witness/kubelet.log | cut -c1-200 | tail -30"))

		By("the record has it apart, and the finding says why")
		boot := node.Current().ID
		Eventually(ctx, func(g Gomega) {
			status := nodeRecovery(ctx).Status
			g.Expect(status.Recoveries).NotTo(BeEmpty())
			record := status.Recoveries[0]
			g.Expect(record.BootID).To(Equal(boot))
			g.Expect(record.Result).To(Equal(v1alpha1.RecoveryComplete))
			g.Expect(record.ConnectivityAtStart).To(Equal(v1alpha1.ConnectivityOffline))
			g.Expect(record.HeldPods).To(ConsistOf(v1alpha1.HeldPod{Pod: "default/" + csiPod, Reason: v1alpha1.ReasonAttachedVolumeNotSynced}))
			g.Expect(record.ReadyPods).To(Equal(record.ExpectedPods))
			g.Expect(record.ExpectedPods).To(BeNumerically(">=", pods))
			g.Expect(record.Phases.NodeList).NotTo(BeNil())
			g.Expect(record.Phases.PodList).NotTo(BeNil())
			reasons := map[string]string{}
			for _, finding := range status.Findings {
				reasons[finding.Reason] = finding.Pod
			}
			g.Expect(reasons).To(HaveKeyWithValue(v1alpha1.ReasonAttachedVolumeNotSynced, "default/"+csiPod))
		}).WithTimeout(soon).WithPolling(time.Second).Should(Succeed(), journal)
		inStep(ctx)
	}, SpecTimeout(5*time.Minute))

	It("starts at once, cut off, when the policy says that no other node can use it", func(ctx SpecContext) {
		setAttachedVolumes(ctx, v1alpha1.AttachedVolumesStart)
		powerCut(ctx, edgenode.WANLinkDown)
		waitReadyHere(ctx, append(allPods(), csiPod)...)
		Expect(published(ctx)).To(Equal(1))
		Expect(node.RestoreWAN(ctx)).To(Succeed())
		setAttachedVolumes(ctx, v1alpha1.AttachedVolumesHold)
		inStep(ctx)
	}, SpecTimeout(5*time.Minute))

	It("never starts in that boot when it was force-deleted meanwhile", func(ctx SpecContext) {
		pod := upstreamPods(ctx)[csiPod]
		lateLink(ctx, deleteStateful)
		By("the link is back, and what was decided meanwhile with it")
		Eventually(ctx, func() string { return shell(ctx, "ls /var/lib/kubelet/pods") }).
			WithTimeout(soon).WithPolling(time.Second).ShouldNot(ContainSubstring(string(pod.UID)), journal)
		Consistently(ctx, func(g Gomega) {
			g.Expect(published(ctx)).To(BeZero(), "the volume was mounted although it may be another node's")
			g.Expect(started(g)).To(BeFalse())
		}).WithTimeout(linkLate).WithPolling(time.Second).Should(Succeed())
		_, there := upstreamPods(ctx)[csiPod]
		Expect(there).To(BeFalse())
		inStep(ctx)
	}, SpecTimeout(5*time.Minute))

	AfterAll(func(ctx SpecContext) {
		Expect(node.RestoreWAN(ctx)).To(Succeed())
		now := int64(0)
		_ = client.CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, csiPod, metav1.DeleteOptions{GracePeriodSeconds: &now})
	}, NodeTimeout(time.Minute))
})
