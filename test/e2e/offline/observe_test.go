package offline

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/scenario/spec"
)

// setMode gives the node a policy with a mode, as the controller would.
func setMode(ctx context.Context, mode v1alpha1.Mode) {
	GinkgoHelper()
	spec.SetPolicy(ctx, recoveries, nodeName, v1alpha1.NodeRecoverySpec{Mode: mode})
}

// arguments are those of the kubelet that runs.
func arguments(ctx context.Context) (string, error) {
	return node.Exec(ctx, "sh", "-c", "tr '\\0' ' ' < /proc/$(systemctl show -P MainPID kubelet.service)/cmdline")
}

// containers are what runs, by pod.
func containers(ctx context.Context) map[string]string {
	GinkgoHelper()
	ids := map[string]string{}
	for name, pod := range upstreamPods(ctx) {
		ids[name] = pod.Status.ContainerStatuses[0].ContainerID
	}
	return ids
}

var _ = Describe("A node whose policy only observes", func() {
	It("has its kubelet left alone, and taken again when the mode is Enforce, while its pods run on", func(ctx SpecContext) {
		setMode(ctx, v1alpha1.ModeEnforce)
		DeferCleanup(func(ctx SpecContext) { setMode(ctx, v1alpha1.ModeEnforce) })
		inStep(ctx)
		before := containers(ctx)
		wired := func(want bool, status metav1.ConditionStatus, reason string) {
			GinkgoHelper()
			Eventually(ctx, func(g Gomega) {
				args, err := arguments(ctx)
				g.Expect(err).NotTo(HaveOccurred())
				if want {
					g.Expect(args).To(And(ContainSubstring("/run/rekindle/kubelet.kubeconfig"), ContainSubstring("/run/rekindle/cri.sock")))
				} else {
					g.Expect(args).To(And(ContainSubstring("kubelet"), Not(ContainSubstring("/run/rekindle"))))
				}
				condition := meta.FindStatusCondition(nodeRecovery(ctx).Status.Conditions, v1alpha1.ConditionLocalAPIServing)
				g.Expect(condition).NotTo(BeNil())
				g.Expect(condition.Status).To(Equal(status), "%s", condition.Message)
				g.Expect(condition.Reason).To(Equal(reason))
			}).WithTimeout(soon).WithPolling(time.Second).Should(Succeed(), journal)
		}
		wired(true, metav1.ConditionTrue, v1alpha1.ReasonKubeletServed)

		By("Observe")
		setMode(ctx, v1alpha1.ModeObserve)
		wired(false, metav1.ConditionFalse, v1alpha1.ReasonObserveOnly)
		inStep(ctx)
		Expect(containers(ctx)).To(Equal(before), "a pod was restarted")
		output, err := node.Exec(ctx, binary, "install")
		Expect(err).NotTo(HaveOccurred(), "%s", output)

		By("Enforce")
		setMode(ctx, v1alpha1.ModeEnforce)
		wired(true, metav1.ConditionTrue, v1alpha1.ReasonKubeletServed)
		inStep(ctx)
		Expect(containers(ctx)).To(Equal(before), "a pod was restarted")
	}, SpecTimeout(5*time.Minute))

	It("has its kubelet left alone by an installation, too", func(ctx SpecContext) {
		output, err := node.Exec(ctx, binary, "uninstall")
		Expect(err).NotTo(HaveOccurred(), "%s", output)
		// Nothing that the agent could remember the policy by.
		spec.Shell(ctx, node, "rm -rf /var/lib/rekindle")
		setMode(ctx, v1alpha1.ModeObserve)
		DeferCleanup(func(ctx SpecContext) { setMode(ctx, v1alpha1.ModeEnforce) })
		pid := func() string { return spec.Shell(ctx, node, "systemctl show -P MainPID kubelet.service") }
		before := pid()

		spec.Install(ctx, node)

		Expect(pid()).To(Equal(before), "kubelet was restarted")
		Expect(arguments(ctx)).NotTo(ContainSubstring("/run/rekindle"))
		Consistently(ctx, pid).WithTimeout(15*time.Second).WithPolling(time.Second).Should(Equal(before), journal)

		By("Enforce")
		setMode(ctx, v1alpha1.ModeEnforce)
		Eventually(ctx, func() (string, error) { return arguments(ctx) }).WithTimeout(soon).WithPolling(time.Second).
			Should(ContainSubstring("/run/rekindle/kubelet.kubeconfig"), journal)
		inStep(ctx)
	}, SpecTimeout(5*time.Minute))
})
