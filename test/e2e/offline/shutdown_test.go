package offline

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"

	"rekindle.edge/test/edgenode"
)

var _ = Describe("An orderly shutdown that the cloud has not heard of", func() {
	It("ends pods for a while, and for good those that run once", func(ctx SpecContext) {
		interrupted := makePod("job-interrupted").once(corev1.RestartPolicyNever)
		retried := makePod("job-retried").once(corev1.RestartPolicyOnFailure)
		done := makePod("job-done").once(corev1.RestartPolicyNever, "-exit=0")
		create(ctx, interrupted, retried, done)
		waitReady(ctx, names(interrupted, retried)...)
		Eventually(ctx, upstreamPods).WithArguments(ctx).WithTimeout(soon).WithPolling(poll).
			Should(HaveKeyWithValue(done.Name, HaveField("Status.Phase", corev1.PodSucceeded)))
		before := upstreamPods(ctx)

		By("the node is shut down while it is cut off")
		DeferCleanup(func(ctx SpecContext) { Expect(node.RestoreWAN(ctx)).To(Succeed()) })
		// Kubelet's last words are lost, here as on a plain node, if it ends while the API server is
		// still waited for.
		cuts := func() int { return strings.Count(wholeLog("agent.log"), "API server does not answer the local API") }
		earlier := cuts()
		Expect(node.CutWAN(ctx, edgenode.WANBlackhole)).To(Succeed())
		Eventually(cuts).WithTimeout(soon).WithPolling(poll).Should(BeNumerically(">", earlier))
		logs := node.Current().Logs
		Expect(node.Shutdown(ctx)).To(Succeed())
		log, err := os.ReadFile(filepath.Join(logs, "kubelet.log"))
		Expect(err).NotTo(HaveOccurred())
		for _, name := range append(allPods(), names(interrupted, retried)...) {
			Expect(string(log)).To(ContainSubstring(`"Shutdown manager finished killing pod" pod="default/` + name + `"`))
		}
		Expect(upstreamPods(ctx)[podName(0)].Status.Phase).To(Equal(corev1.PodRunning), "the cloud has heard of it")

		By("it starts cut off")
		_, err = node.Boot(ctx)
		Expect(err).NotTo(HaveOccurred())
		AddReportEntry("last pod Ready after kernel start", waitReadyHere(ctx, allPods()...).String())
		time.Sleep(batch)
		for _, name := range names(interrupted, retried, done) {
			Expect(runs(ctx, name, "web")).To(Equal(1), name)
		}

		By("the link comes back")
		Expect(node.RestoreWAN(ctx)).To(Succeed())
		inStep(ctx)
		Eventually(ctx, func(g Gomega) {
			after := upstreamPods(ctx)
			for name, was := range before {
				g.Expect(after[name].UID).To(Equal(was.UID), name)
			}
			for _, name := range names(interrupted, retried) {
				g.Expect(after[name].Status.Phase).NotTo(Equal(corev1.PodRunning), name)
				g.Expect(after[name].Status.Conditions).To(ContainElement(HaveField("Type", corev1.DisruptionTarget)), name)
			}
			g.Expect(after[done.Name].Status.Phase).To(Equal(corev1.PodSucceeded))
		}).WithTimeout(soon).WithPolling(time.Second).Should(Succeed(), journal)
		for _, name := range names(interrupted, retried, done) {
			Expect(runs(ctx, name, "web")).To(Equal(1), name)
		}
	}, SpecTimeout(5*time.Minute))
})
