package recovery

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/edgenode"
)

func bootIDs(nrec *v1alpha1.NodeRecovery) []string {
	var ids []string
	for _, r := range nrec.Status.Recoveries {
		ids = append(ids, r.BootID)
	}
	return ids
}

var _ = Describe("A boot without the API server", Ordered, func() {
	It("is in the status once the link is back, once", func(ctx SpecContext) {
		before, err := product.NodeRecovery(ctx, node)
		Expect(err).NotTo(HaveOccurred())
		Expect(edge.CutWAN(ctx, edgenode.WANBlackhole)).To(Succeed())
		boot := restart(ctx)
		By("a minute without the API server")
		Eventually(ctx, boot.Uptime).WithTimeout(2 * time.Minute).Should(BeNumerically(">", 40*time.Second))
		Expect(edge.RestoreWAN(ctx)).To(Succeed())

		record, err := product.WaitRecovery(ctx, node, boot.ID, 3*time.Minute)
		Expect(err).NotTo(HaveOccurred())
		Expect(record.ConnectivityAtStart).To(Equal(v1alpha1.ConnectivityOffline))
		Expect(record.ConnectivityAtEnd).To(Equal(v1alpha1.ConnectivityOnline))
		Expect(record.Result).To(Equal(v1alpha1.RecoveryComplete))
		Expect(*record.TotalMilliseconds).To(BeNumerically(">", 40_000), "kubelet has no pods until the link is back")
		Expect(record.TargetMet).To(Equal(v1alpha1.TruthFalse))
		agree(boot, record)
		want := append([]string{boot.ID}, bootIDs(before)...)
		Consistently(ctx, func(g Gomega) {
			after, err := product.NodeRecovery(ctx, node)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(bootIDs(after)).To(Equal(want[:min(len(want), 5)]), "once, and no other boot with it")
			g.Expect(after.Status.Recoveries[0]).To(Equal(*record), "and it stays as it is")
		}).WithTimeout(5 * time.Second).Should(Succeed())
	})

	It("is in the status of the new object after its Node was deleted while it was off", func(ctx SpecContext) {
		before, err := product.NodeRecovery(ctx, node)
		Expect(err).NotTo(HaveOccurred())

		Expect(edge.CutWAN(ctx, edgenode.WANLinkDown)).To(Succeed())
		offline := restart(ctx)
		Expect(product.Client.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})).To(Succeed())
		Eventually(ctx, func() error { _, err := product.NodeRecovery(ctx, node); return err }).
			WithTimeout(time.Minute).ShouldNot(Succeed(), "the NodeRecovery goes with its Node")
		Eventually(ctx, offline.Uptime).WithTimeout(time.Minute).Should(BeNumerically(">", 15*time.Second))
		Expect(edge.RestoreWAN(ctx)).To(Succeed())

		_, err = product.WaitRecovery(ctx, node, offline.ID, 3*time.Minute)
		Expect(err).NotTo(HaveOccurred())
		after, err := product.NodeRecovery(ctx, node)
		Expect(err).NotTo(HaveOccurred())
		Expect(after.UID).NotTo(Equal(before.UID))
		want := append([]string{offline.ID}, bootIDs(before)...)
		Expect(bootIDs(after)).To(Equal(want[:min(len(want), 5)]), "the history came back whole, each boot once")
	})
})
