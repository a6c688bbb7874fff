package recovery

import (
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/edgenode"
)

var _ = Describe("What is no loss of power", func() {
	It("makes no record when kubelet, containerd or the agent restarts alone", func(ctx SpecContext) {
		settle() // a record that is about to be closed is in the status by then
		before, err := product.NodeRecovery(ctx, node)
		Expect(err).NotTo(HaveOccurred())
		Expect(edge.Systemctl(ctx, "restart", "rekindle-agent.service", "containerd.service", "kubelet.service")).To(Succeed())
		Expect(edge.WaitReady(ctx)).To(Succeed())
		// The records themselves: a second one of this boot would take the first one's place.
		Consistently(ctx, func() ([]v1alpha1.Recovery, error) {
			after, err := product.NodeRecovery(ctx, node)
			return after.Status.Recoveries, err
		}).WithTimeout(20 * time.Second).Should(Equal(before.Status.Recoveries))
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

var _ = Describe("A pod that is not Ready when the time is up", func() {
	It("ends the record after ten minutes, by name and reason", func(ctx SpecContext) {
		if os.Getenv("REKINDLE_FULL") == "" {
			Skip("takes eleven minutes; run `make test-e2e FULL=1`")
		}
		broken := edgenode.WebPod("ready-once", node, "-ready-once=/scratch/started")
		Expect(product.Client.Create(ctx, broken)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { remove(ctx, broken.Name) })
		Expect(product.WaitPodsReady(ctx, node, pods+1, time.Minute)).To(Succeed())

		boot := restart(ctx)
		record, err := product.WaitRecovery(ctx, node, boot.ID, 11*time.Minute)
		Expect(err).NotTo(HaveOccurred())
		Expect(boot.Uptime()).To(BeNumerically("~", 10*time.Minute, 10*time.Second))
		Expect(record.Result).To(Equal(v1alpha1.RecoveryIncomplete))
		Expect(record.IncompleteReason).To(Equal(v1alpha1.IncompletePodsNotReady))
		Expect(record.SlowestPods[0].Pod).To(Equal("default/ready-once"))
		Expect(record.SlowestPods[0].Reason).To(Equal("ContainersNotReady"))
		Expect(record.SlowestPods[0].Milliseconds).To(BeNil())
	})
})
