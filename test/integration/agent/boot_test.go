package agent

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/utils/ptr"

	"rekindle.edge/api/v1alpha1"
)

// near is what a measured time may be off on a busy machine.
const near = 250

func sum(phases v1alpha1.RecoveryPhases) int64 {
	var total int64
	for _, phase := range []*int64{phases.Kernel, phases.Userspace, phases.KubeletStart, phases.FirstSandbox, phases.FirstReady, phases.LastReady} {
		total += ptr.Deref(phase, 0)
	}
	return total
}

var _ = Describe("A boot", func() {
	It("is measured while the node is connected, with a power cut before it", func() {
		n := newNode()
		n.settle("a", "b")
		Expect(n.recoveries()).To(BeEmpty(), "the first boot of a new store has no record")
		n.powerCut()
		n.powerOn()
		first, last := n.comeUp("a", "b")

		Eventually(n.recoveries).Should(HaveLen(1))
		records, err := n.recoveries()
		Expect(err).NotTo(HaveOccurred())
		record := records[0]
		Expect(record).To(SatisfyAll(
			HaveField("BootID", n.bootID()),
			HaveField("PreviousEnd", v1alpha1.PreviousEndPowerLoss),
			HaveField("Result", v1alpha1.RecoveryComplete),
			HaveField("ExpectedPods", BeEquivalentTo(2)),
			HaveField("ReadyPods", BeEquivalentTo(2)),
			HaveField("TargetSeconds", BeEquivalentTo(20)),
			HaveField("TargetMet", v1alpha1.TruthTrue),
			HaveField("ConnectivityAtStart", v1alpha1.ConnectivityOnline),
			HaveField("ConnectivityAtEnd", v1alpha1.ConnectivityOnline),
			HaveField("DownMilliseconds", HaveValue(BeNumerically("<", 60_000))),
			HaveField("SlowestPods", HaveLen(2)),
		))
		Expect(*record.TotalMilliseconds).To(BeNumerically("~", last.Milliseconds(), near))
		Expect(sum(record.Phases)).To(Equal(*record.TotalMilliseconds))
		Expect(*record.TotalMilliseconds - *record.Phases.LastReady).To(BeNumerically("~", first.Milliseconds(), near))
		Expect(record.Phases.Kernel).To(HaveValue(BeEquivalentTo(50)))
		Expect(*record.Phases.Kernel + *record.Phases.Userspace).To(BeNumerically("~", n.kubelet.Load(), near))
	})

	It("is measured by the boot clock, whatever the wall clock does", func() {
		n := newNode()
		n.settle("a")
		n.powerCut()
		n.clock.step(-40 * 365 * 24 * time.Hour)
		n.powerOn()
		n.startKubelet()
		n.start("a")
		n.clock.step(80 * 365 * 24 * time.Hour)
		n.setReady("a", true)
		last := n.clock.Boot()

		Eventually(n.recoveries).Should(HaveLen(1))
		records, err := n.recoveries()
		Expect(err).NotTo(HaveOccurred())
		Expect(*records[0].TotalMilliseconds).To(BeNumerically("~", last.Milliseconds(), near))
		Expect(records[0].DownMilliseconds).To(BeNil(), "a clock that was never right does not tell")
	})

	It("after an orderly shutdown says so", func() {
		n := newNode()
		n.settle("a")
		// What stops because the system does was Ready all the same.
		n.stopping.Store(true)
		n.setReady("a", false)
		time.Sleep(1500 * time.Millisecond)
		n.shutdown()
		n.powerOn()
		n.comeUp("a")
		Eventually(n.recoveries).Should(ConsistOf(SatisfyAll(
			HaveField("PreviousEnd", v1alpha1.PreviousEndClean),
			HaveField("ExpectedPods", BeEquivalentTo(1)),
			HaveField("Result", v1alpha1.RecoveryComplete),
		)))
	})

	It("with a pod that never gets Ready is incomplete when its time is up, and names the pod", func() {
		n := newNode()
		n.settle("a", "b")
		n.powerCut()
		n.powerOn()
		n.comeUp("a")
		n.start("b")
		n.setReady("b", false)
		Consistently(n.recoveries).Should(BeEmpty())
		n.clock.pass(11 * time.Minute)
		Eventually(n.recoveries).Should(ConsistOf(SatisfyAll(
			HaveField("Result", v1alpha1.RecoveryIncomplete),
			HaveField("IncompleteReason", v1alpha1.IncompletePodsNotReady),
			HaveField("TotalMilliseconds", BeNil()),
			HaveField("ReadyPods", BeEquivalentTo(1)),
			HaveField("TargetMet", v1alpha1.TruthFalse),
			HaveField("SlowestPods", ContainElement(SatisfyAll(
				HaveField("Pod", "default/"+n.name+"-b"), HaveField("Reason", "ContainersNotReady"), HaveField("Milliseconds", BeNil())))),
		)))

		By("not waiting for that pod at the next restart")
		time.Sleep(1500 * time.Millisecond)
		n.powerCut()
		n.powerOn()
		n.comeUp("a")
		Eventually(n.recoveries).Should(HaveExactElements(
			SatisfyAll(HaveField("Result", v1alpha1.RecoveryComplete), HaveField("ExpectedPods", BeEquivalentTo(1)), HaveField("NotReadyBefore", BeEquivalentTo(1))),
			SatisfyAll(HaveField("Result", v1alpha1.RecoveryIncomplete), HaveField("SlowestPods", BeEmpty()))))
	})

	It("that ends before its recovery does is closed by the next, which expects what has not come up", func() {
		n := newNode()
		n.settle("a", "b", "broken")
		n.powerCut()
		n.powerOn()
		n.startKubelet()
		n.setReady("b", false)
		n.start("a")
		n.setReady("a", true)
		n.start("broken")
		n.setReady("broken", false)
		// A pod that runs and is not Ready for so long is taken as it is.
		time.Sleep(7 * time.Second)
		n.powerCut()
		n.powerOn()
		n.comeUp("a", "b")
		Eventually(n.recoveries).Should(HaveExactElements(
			SatisfyAll(HaveField("Result", v1alpha1.RecoveryComplete), HaveField("ExpectedPods", BeEquivalentTo(2)), HaveField("NotReadyBefore", BeEquivalentTo(1))),
			SatisfyAll(HaveField("IncompleteReason", v1alpha1.IncompleteRestarted), HaveField("ExpectedPods", BeEquivalentTo(3)), HaveField("ReadyPods", BeEquivalentTo(1)),
				HaveField("TargetMet", v1alpha1.TruthUnknown))))
	})

	It("is no restart of the agent, of kubelet or of the runtime", func() {
		n := newNode()
		n.settle("a")
		n.killAgent()
		n.startAgent()
		n.startKubelet()
		n.runtime.stop()
		n.runtime.start()
		Consistently(n.recoveries).Should(BeEmpty())
	})
})
