package readiness

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/test/edgenode"
	"rekindle.edge/test/scenario"
)

var _ = Describe("The verdict before an outage", Ordered, ContinueOnFailure, func() {
	for _, policy := range []onePolicy{byDefault, asWritten} {
		It("is told for each pod: "+policy.name, func(ctx SpecContext) {
			rows := chosen(policy.rows)
			if len(rows) == 0 {
				Skip("not of the core; run `make test-e2e FULL=1`")
			}
			fresh(ctx, installed, nil)
			setPolicy(ctx, policy.within(), policy.fields)
			table = append(table, judge(ctx, rows, policy.within())...)
		}, SpecTimeout(8*time.Minute))
	}

	for _, r := range ofTheNode {
		It("is told for the node: "+r.name, func(ctx SpecContext) {
			if !full() && !r.core {
				Skip("not of the core; run `make test-e2e FULL=1`")
			}
			table = append(table, judgeNode(ctx, r))
		}, SpecTimeout(5*time.Minute))
	}

	It("is told for what clients on the node asked for", func(ctx SpecContext) {
		if !full() {
			Skip("not of the core; run `make test-e2e FULL=1`")
		}
		table = append(table, judgeMissed(ctx)...)
	}, SpecTimeout(5*time.Minute))

	It("is what the outage brings, in every row", func() {
		Expect(closeTable()).To(BeEmpty())
	})
})

// judge puts all faults in, reads the verdict while the link is up, has the outage, and
// sees which pods come back.
func judge(ctx context.Context, rows []row, target time.Duration) []line {
	GinkgoHelper()
	for _, r := range rows {
		r.prepare.do(ctx)
	}
	for _, r := range rows {
		pod := edgenode.WebPod(r.name, nodeName)
		for _, change := range r.pod {
			change(pod)
		}
		_, err := client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	for _, r := range rows {
		Eventually(ctx, isAs).WithArguments(ctx, r.name, r.phase()).WithTimeout(soon).WithPolling(poll).Should(BeTrue(), "%s\n%s", r.name, journal)
	}
	Eventually(ctx, verdict).WithArguments(ctx).WithTimeout(soon).WithPolling(time.Second).
		ShouldNot(HaveField("Ready", metav1.ConditionUnknown), journal)
	for _, r := range rows {
		r.fault.do(ctx)
	}
	lines := read(ctx, rows)
	see(ctx, lines, cutOff(ctx), target)
	return lines
}

// isAs says whether the API server has a pod as it is before the outage.
func isAs(ctx context.Context, name string, phase corev1.PodPhase) (bool, error) {
	pod, err := client.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	return pod.Status.Phase == phase && (phase != corev1.PodRunning || scenario.Ready(pod)), nil
}

// read takes down what the verdict says of each row, once it says what is written there,
// and at the latest after the time in which it must have followed its cause.
func read(ctx context.Context, rows []row) []line {
	GinkgoHelper()
	var lines []line
	time.Sleep(flip) // an earlier verdict may not have seen it all
	for end := time.Now().Add(flip); ; time.Sleep(poll) {
		report := verdict(ctx)
		says, fits := blocking(report), true
		lines = nil
		for _, r := range rows {
			l := line{row: r, said: slices.Concat(says[""], says[r.name]), unknown: report.Ready == metav1.ConditionUnknown, came: r.want}
			fits = fits && l.agrees()
			lines = append(lines, l)
		}
		if fits || time.Now().After(end) {
			return lines
		}
	}
}

// see waits for what comes back: until everything has that should and, if something should
// not, for three times the target.
func see(ctx context.Context, lines []line, boot *edgenode.Boot, target time.Duration) {
	GinkgoHelper()
	prober, err := node.Probe(ctx)
	Expect(err).NotTo(HaveOccurred())
	defer prober.Stop()
	for done := false; !done; time.Sleep(poll) {
		witness, err := boot.Witness()
		Expect(err).NotTo(HaveOccurred())
		serving := prober.Serving()
		started := map[string]bool{}
		for _, sandbox := range witness.Sandboxes {
			started[sandbox.Pod] = true
		}
		done = boot.Since(time.Now()) > 3*target
		all := true
		for i := range lines {
			name := metav1.NamespaceDefault + "/" + lines[i].name
			_, ready := witness.FirstReady(name)
			switch _, answers := serving[name]; {
			case ready && answers:
				lines[i].came = comesBack
			case lines[i].want == staysEnded && !started[name]:
				lines[i].came = staysEnded
			default:
				lines[i].came = staysDown
			}
			all = all && lines[i].came == comesBack
		}
		done = done || all
	}

}
