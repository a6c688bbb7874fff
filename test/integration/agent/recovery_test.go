package agent

import (
	"fmt"
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rekindle.edge/api/v1alpha1"
)

var _ = Describe("A recovery", func() {
	It("goes on when the agent is killed in the middle of it", func() {
		n := newNode()
		n.settle("a", "b")
		n.powerCut()
		n.powerOn()
		n.comeUp("a")
		kubelet := n.kubelet.Load()
		time.Sleep(500 * time.Millisecond)
		n.killAgent()

		By("killing kubelet as well")
		n.startKubelet()
		n.startAgent()
		n.start("b")
		n.setReady("b", true)
		last := n.clock.Boot()
		Eventually(n.recoveries).Should(HaveLen(1))
		records, err := n.recoveries()
		Expect(err).NotTo(HaveOccurred())
		Expect(records[0].PreviousEnd).To(Equal(v1alpha1.PreviousEndPowerLoss))
		Expect(*records[0].Phases.Kernel+*records[0].Phases.Userspace).To(BeNumerically("~", kubelet, near), "the first kubelet of the boot counts")
		Expect(*records[0].TotalMilliseconds).To(BeNumerically("~", last.Milliseconds(), near))
		Expect(records[0].ReadyPods).To(BeEquivalentTo(2))
	})

	It("goes on when the runtime is restarted in the middle of it, and misses nothing", func() {
		n := newNode()
		n.settle("a", "b")
		n.powerCut()
		n.powerOn()
		n.comeUp("a")
		n.runtime.stop()
		n.runtime.run("s", n.container("b"), true)
		n.runtime.start()
		n.setReady("b", true)
		last := n.clock.Boot()
		Eventually(n.recoveries).Should(HaveLen(1))
		records, err := n.recoveries()
		Expect(err).NotTo(HaveOccurred())
		Expect(*records[0].TotalMilliseconds).To(BeNumerically("~", last.Milliseconds(), near))
		Eventually(n.runtime.connections).Should(BeZero(), "nothing is watched while nothing is timed")
	})

	It("without the API server is reported once when the link is back", func() {
		n := newNode()
		n.settle("a")
		n.powerCut()
		n.link.Down()
		n.powerOn()
		n.startKubelet()
		time.Sleep(time.Second)
		n.clock.pass(11 * time.Minute)
		time.Sleep(1500 * time.Millisecond)
		n.link.Up(apiServer())
		want := ConsistOf(SatisfyAll(
			HaveField("BootID", n.bootID()),
			HaveField("Result", v1alpha1.RecoveryIncomplete),
			HaveField("IncompleteReason", v1alpha1.IncompleteNoPodList),
			HaveField("ConnectivityAtStart", v1alpha1.ConnectivityOffline),
			HaveField("ConnectivityAtEnd", v1alpha1.ConnectivityOffline),
		))
		Eventually(n.recoveries).Should(want)
		written, err := n.recovery()
		Expect(err).NotTo(HaveOccurred())

		By("leaving the status alone from then on, also after a restart of the agent")
		n.stopAgent()
		n.startAgent()
		Consistently(n.recovery).Should(HaveField("ResourceVersion", written.ResourceVersion))
		Expect(n.recoveries()).To(want)
	})

	It("whose link comes late ends when the last pod is Ready", func() {
		n := newNode()
		n.settle("a")
		n.powerCut()
		n.link.Down()
		n.powerOn()
		n.startKubelet()
		time.Sleep(500 * time.Millisecond)
		n.clock.pass(30 * time.Second)
		time.Sleep(500 * time.Millisecond)
		n.link.Up(apiServer())
		n.start("a")
		n.setReady("a", true)
		last := n.clock.Boot()
		Eventually(n.recoveries).Should(ConsistOf(SatisfyAll(
			HaveField("Result", v1alpha1.RecoveryComplete),
			HaveField("TotalMilliseconds", HaveValue(BeNumerically("~", last.Milliseconds(), 1500))),
			HaveField("TargetMet", v1alpha1.TruthFalse),
			HaveField("ConnectivityAtStart", v1alpha1.ConnectivityOffline),
			HaveField("ConnectivityAtEnd", v1alpha1.ConnectivityOnline),
		)))
	})
})

var _ = Describe("The status", func() {
	It("comes back in full when Node and NodeRecovery are re-created, with the agent up and with it down", func() {
		n := newNode()
		n.settle("a")
		n.powerCut()
		n.powerOn()
		n.comeUp("a")
		Eventually(n.recoveries).Should(HaveLen(1))
		before, err := n.recovery()
		Expect(err).NotTo(HaveOccurred())
		recreate := func() {
			Expect(admin.Delete(ctx, before.DeepCopy(), &client.DeleteOptions{})).To(Succeed())
			Expect(admin.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name}})).To(Succeed())
			n.register()
		}
		check := func() {
			GinkgoHelper()
			Eventually(n.recoveries).Should(Equal(before.Status.Recoveries))
			Expect(n.recovery()).To(HaveField("UID", Not(Equal(before.UID))))
		}
		recreate()
		check()

		n.stopAgent()
		before, err = n.recovery()
		Expect(err).NotTo(HaveOccurred())
		recreate()
		n.startAgent()
		check()
	})

	It("is set right again when someone else has written it", func() {
		n := newNode()
		n.settle("a")
		n.powerCut()
		n.powerOn()
		n.comeUp("a")
		Eventually(n.recoveries).Should(HaveLen(1))
		recovery, err := n.recovery()
		Expect(err).NotTo(HaveOccurred())
		want := recovery.Status.DeepCopy()
		recovery.Status = v1alpha1.NodeRecoveryStatus{AgentVersion: "someone"}
		Expect(admin.Status().Update(ctx, recovery)).To(Succeed())
		Eventually(n.recoveries).Should(Equal(want.Recoveries))
	})

	It("costs the disk nothing while nothing changes but heartbeats", func() {
		n := newNode()
		n.settle("a")
		beat := func(status corev1.ConditionStatus) {
			GinkgoHelper()
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name}}
			patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q,"lastHeartbeatTime":%q}]}}`, status, time.Now().UTC().Format(time.RFC3339))
			Expect(admin.Status().Patch(ctx, node, client.RawPatch(types.StrategicMergePatchType, []byte(patch)))).To(Succeed())
		}
		written := func() time.Time {
			info, err := os.Stat(n.path("state/rekindle.db"))
			Expect(err).NotTo(HaveOccurred())
			return info.ModTime()
		}
		beat(corev1.ConditionTrue)
		before := written()
		Eventually(written).ShouldNot(Equal(before), "a Node that is Ready is worth a write")
		time.Sleep(1500 * time.Millisecond)
		before = written()
		for range 4 {
			time.Sleep(1100 * time.Millisecond)
			beat(corev1.ConditionTrue)
		}
		time.Sleep(1500 * time.Millisecond)
		Expect(written()).To(Equal(before))
	})

	It("says that the snapshot is fresh, and what the agent does not do", func() {
		n := newNode()
		Eventually(n.recovery).Should(SatisfyAll(
			HaveField("Status.AgentVersion", "v0-test"),
			HaveField("Status.ObservedGeneration", BeEquivalentTo(1)),
			HaveField("Status.Snapshot.InStepTime.Time", BeTemporally("~", time.Now(), time.Minute)),
			HaveField("Status.Conditions", ConsistOf(
				SatisfyAll(HaveField("Type", v1alpha1.ConditionRestartReady), HaveField("Status", metav1.ConditionUnknown), HaveField("Reason", v1alpha1.ReasonNotEvaluated)),
				SatisfyAll(HaveField("Type", v1alpha1.ConditionSnapshotFresh), HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonInStep)),
				SatisfyAll(HaveField("Type", v1alpha1.ConditionImagesWarm), HaveField("Reason", v1alpha1.ReasonNotInstalled)),
				SatisfyAll(HaveField("Type", v1alpha1.ConditionLocalAPIServing), HaveField("Reason", v1alpha1.ReasonNotInstalled)),
			))))
		settled, err := n.recovery()
		Expect(err).NotTo(HaveOccurred())
		Consistently(n.recovery).Should(HaveField("ResourceVersion", settled.ResourceVersion), "an idle agent writes nothing")
	})
})

var _ = Describe("The policy", func() {
	It("is kept while the node is cut off, and dropped when it is gone while connected", func() {
		n := newNode()
		n.settle("a")
		n.powerCut()

		By("booting cut off: the stored target applies")
		n.link.Down()
		n.powerOn()
		n.startKubelet()
		time.Sleep(time.Second)
		n.clock.pass(11 * time.Minute)
		time.Sleep(1500 * time.Millisecond)
		n.link.Up(apiServer())
		Eventually(n.recoveries).Should(ConsistOf(HaveField("TargetSeconds", BeEquivalentTo(20))))
		n.start("a")
		n.setReady("a", true)

		By("deleting it while the node is connected: the defaults apply at the next boot")
		recovery, err := n.recovery()
		Expect(err).NotTo(HaveOccurred())
		Expect(admin.Delete(ctx, recovery)).To(Succeed())
		time.Sleep(2500 * time.Millisecond)
		n.powerCut()
		n.powerOn()
		n.comeUp("a")
		time.Sleep(1500 * time.Millisecond)
		n.createRecovery(45)
		Eventually(n.recoveries).Should(HaveExactElements(
			SatisfyAll(HaveField("BootID", n.bootID()), HaveField("TargetSeconds", BeEquivalentTo(30)), HaveField("Result", v1alpha1.RecoveryComplete)),
			HaveField("TargetSeconds", BeEquivalentTo(20))))
	})
})
