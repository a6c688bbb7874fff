package recovery

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gstruct"
	"github.com/onsi/gomega/types"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/edgenode"
)

// agreement is how far an edge of a record may be from the witness.
const agreement = 250 * time.Millisecond

// edges are times since kernel start; those that did not happen are zero.
type edges struct{ kubelet, firstSandbox, firstReady, lastReady time.Duration }

// recorded adds the phases up to edges.
func recorded(r *v1alpha1.Recovery) edges {
	var sum time.Duration
	until := func(phases ...*int64) time.Duration {
		for _, ms := range phases {
			if ms != nil {
				sum += time.Duration(*ms) * time.Millisecond
			}
		}
		if phases[len(phases)-1] == nil {
			return 0
		}
		return sum
	}
	p := r.Phases
	return edges{
		kubelet:      until(p.Kernel, p.Userspace),
		firstSandbox: until(p.KubeletStart, p.NodeList, p.PodList, p.FirstSandbox),
		firstReady:   until(p.FirstReady),
		lastReady:    until(p.LastReady),
	}
}

// witnessed reads the same edges from the logs.
func witnessed(boot *edgenode.Boot) edges {
	GinkgoHelper()
	w, err := boot.Witness()
	Expect(err).NotTo(HaveOccurred())
	Expect(w.KubeletStarts).NotTo(BeEmpty())
	Expect(w.Sandboxes).NotTo(BeEmpty())
	e := edges{kubelet: boot.Since(w.KubeletStarts[0]), firstSandbox: boot.Since(w.Sandboxes[0].Returned)}
	for pod := range w.Ready {
		at, _ := w.FirstReady(pod)
		since := boot.Since(at)
		if e.firstReady == 0 || since < e.firstReady {
			e.firstReady = since
		}
		e.lastReady = max(e.lastReady, since)
	}
	return e
}

func agree(boot *edgenode.Boot, r *v1alpha1.Recovery) {
	GinkgoHelper()
	got, want := recorded(r), witnessed(boot)
	if r.Result == v1alpha1.RecoveryIncomplete {
		want.lastReady = 0
	}
	report := fmt.Sprintf("record against witness: %+v %+v", got, want)
	say("%s", report)
	AddReportEntry(report)
	for _, edge := range []struct {
		name      string
		got, want time.Duration
	}{
		{"kubelet start", got.kubelet, want.kubelet},
		{"first sandbox", got.firstSandbox, want.firstSandbox},
		{"first Ready", got.firstReady, want.firstReady},
		{"last Ready", got.lastReady, want.lastReady},
	} {
		Expect(edge.got).To(BeNumerically("~", edge.want, agreement), edge.name)
	}
}

var _ = Describe("Five power cuts in a row", Ordered, func() {
	complete := func() types.GomegaMatcher {
		return gstruct.PointTo(gstruct.MatchFields(gstruct.IgnoreExtras, gstruct.Fields{
			"Result":              Equal(v1alpha1.RecoveryComplete),
			"PreviousEnd":         Equal(v1alpha1.PreviousEndPowerLoss),
			"ConnectivityAtStart": Equal(v1alpha1.ConnectivityOnline),
			"ConnectivityAtEnd":   Equal(v1alpha1.ConnectivityOnline),
			"ExpectedPods":        BeNumerically("==", pods),
			"ReadyPods":           BeNumerically("==", pods),
			"TotalMilliseconds":   Not(BeNil()),
			"TargetSeconds":       BeNumerically("==", 30),
		}))
	}

	It("measures an undisturbed recovery", func(ctx SpecContext) {
		boot := restart(ctx)
		record, err := product.WaitRecovery(ctx, node, boot.ID, 2*time.Minute)
		Expect(err).NotTo(HaveOccurred())
		Expect(record).To(complete())
		Expect(record.SlowestPods).To(HaveLen(5))
		agree(boot, record)
	})

	It("keeps kubelet's first start when kubelet is killed in mid-recovery", func(ctx SpecContext) {
		boot := restart(ctx)
		Eventually(ctx, func(g Gomega) {
			w, err := boot.Witness()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(w.Sandboxes).NotTo(BeEmpty())
		}).WithTimeout(time.Minute).WithPolling(20 * time.Millisecond).Should(Succeed())
		Expect(edge.KillKubelet(ctx)).To(Succeed())
		record, err := product.WaitRecovery(ctx, node, boot.ID, 3*time.Minute)
		Expect(err).NotTo(HaveOccurred())
		Expect(record).To(complete())
		agree(boot, record)
	})

	It("measures again, with containerd killed in mid-recovery", func(ctx SpecContext) {
		boot := restart(ctx)
		Eventually(ctx, func(g Gomega) {
			w, err := boot.Witness()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(w.Sandboxes).NotTo(BeEmpty())
		}).WithTimeout(time.Minute).WithPolling(20 * time.Millisecond).Should(Succeed())
		Expect(edge.Systemctl(ctx, "kill", "--kill-whom=main", "--signal=KILL", "containerd.service")).To(Succeed())
		record, err := product.WaitRecovery(ctx, node, boot.ID, 3*time.Minute)
		Expect(err).NotTo(HaveOccurred())
		Expect(record).To(complete())
		agree(boot, record)
	})

	It("names the pod that never gets Ready", func(ctx SpecContext) {
		const broken = "ready-once"
		Expect(product.Client.Create(ctx, edgenode.WebPod(broken, node, "-ready-once=/scratch/started"))).To(Succeed())
		Expect(product.WaitPodsReady(ctx, node, pods+1, time.Minute)).To(Succeed())

		boot := restart(ctx)
		Expect(product.WaitPodsReady(ctx, node, pods, 2*time.Minute)).To(Succeed())
		Eventually(ctx, func(g Gomega) {
			w, err := boot.Witness()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(w.Ready).To(HaveLen(pods))
		}).WithTimeout(time.Minute).Should(Succeed())

		// The record stays open for ten minutes, or until the next restart, which closes it.
		By("the fifth cut")
		next := restart(ctx)
		record, err := product.WaitRecovery(ctx, node, boot.ID, 2*time.Minute)
		Expect(err).NotTo(HaveOccurred())
		Expect(record.Result).To(Equal(v1alpha1.RecoveryIncomplete))
		Expect(record.IncompleteReason).To(Equal(v1alpha1.IncompleteRestarted))
		Expect(record.ExpectedPods).To(BeNumerically("==", pods+1))
		Expect(record.ReadyPods).To(BeNumerically("==", pods))
		Expect(record.TotalMilliseconds).To(BeNil())
		agree(boot, record)

		By("a pod that was not Ready before is not waited for")
		last, err := product.WaitRecovery(ctx, node, next.ID, 2*time.Minute)
		Expect(err).NotTo(HaveOccurred())
		Expect(last).To(complete())
		Expect(last.NotReadyBefore).To(BeNumerically("==", 1))
		agree(next, last)

		remove(ctx, broken)
	})
})
