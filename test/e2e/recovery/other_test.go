package recovery

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"rekindle.edge/api/v1alpha1"
)

var _ = Describe("What is no loss of power", func() {
	It("makes no record when kubelet, containerd or the agent restarts alone", func(ctx SpecContext) {
		before, err := product.NodeRecovery(ctx, node)
		Expect(err).NotTo(HaveOccurred())
		Expect(edge.Systemctl(ctx, "restart", "rekindle-agent.service", "containerd.service", "kubelet.service")).To(Succeed())
		Expect(edge.WaitReady(ctx)).To(Succeed())
		Consistently(ctx, func() ([]string, error) {
			after, err := product.NodeRecovery(ctx, node)
			return bootIDs(after), err
		}).WithTimeout(5 * time.Second).Should(Equal(bootIDs(before)))
	})

	It("calls an orderly shutdown clean", func(ctx SpecContext) {
		boot, err := edge.Reboot(ctx)
		Expect(err).NotTo(HaveOccurred())
		record, err := product.WaitRecovery(ctx, node, boot.ID, 2*time.Minute)
		Expect(err).NotTo(HaveOccurred())
		Expect(record.PreviousEnd).To(Equal(v1alpha1.PreviousEndClean))
		Expect(record.Result).To(Equal(v1alpha1.RecoveryComplete))
		agree(boot, record)
	})
})
