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
)

// two are the pods of a node that has a row to itself.
var two = []row{{name: "one", want: comesBack}, {name: "two", want: comesBack}}

func isOfTwo(name string) bool {
	return slices.ContainsFunc(two, func(r row) bool { return r.name == name })
}

// judgeNode is judge for a row of the node.
func judgeNode(ctx context.Context, r row) line {
	GinkgoHelper()
	if !saved[withTwo] {
		fresh(ctx, installed, nil)
		for _, pod := range two {
			_, err := client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, edgenode.WebPod(pod.name, nodeName), metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		waitTwo(ctx)
		time.Sleep(batch)
	}
	setPolicy(ctx, targetOfTwo, r.policy)
	fresh(ctx, withTwo, isOfTwo)
	waitTwo(ctx)
	r.prepare.do(ctx)
	Eventually(ctx, verdict).WithArguments(ctx).WithTimeout(soon).WithPolling(time.Second).
		Should(HaveField("Ready", metav1.ConditionTrue), "before the fault\n%s", journal)
	r.fault.do(ctx)
	began := time.Now()
	l := readNode(ctx, r)
	boot := cutOff(ctx)
	pods := make([]line, len(two))
	for i := range two {
		pods[i] = line{row: two[i]}
		if r.want == staysDown {
			pods[i].want = staysDown
		}
	}
	see(ctx, pods, boot, targetOfTwo)
	l.came = together(pods)
	if r.cut > 0 && l.came == comesBack && !rejoins(ctx, boot, began.Add(r.cut)) {
		l.came = staysOut
	}
	return l
}

func (s step) do(ctx context.Context) {
	if s != nil {
		s(ctx)
	}
}

// waitTwo waits until both pods are Ready in the present boot.
func waitTwo(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		witness, err := node.Current().Witness()
		g.Expect(err).NotTo(HaveOccurred())
		for _, pod := range two {
			g.Expect(witness.Ready).To(HaveKey(metav1.NamespaceDefault + "/" + pod.name))
			g.Expect(isAs(ctx, pod.name, corev1.PodRunning)).To(BeTrue(), pod.name)
		}
	}).WithTimeout(soon).WithPolling(poll).Should(Succeed(), journal)
}

// readNode is read for a row of the node: what blocks a pod counts as well.
func readNode(ctx context.Context, r row) line {
	GinkgoHelper()
	time.Sleep(flip) // an earlier verdict may not have seen it
	for end := time.Now().Add(flip); ; time.Sleep(poll) {
		report := verdict(ctx)
		l := line{row: r, unknown: report.Ready == metav1.ConditionUnknown, came: r.want}
		for _, reasons := range blocking(report) {
			l.said = append(l.said, reasons...)
		}
		slices.Sort(l.said)
		if l.agrees() || time.Now().After(end) {
			return l
		}
	}
}

// together is the outcome of the node, by its pods.
func together(pods []line) outcome {
	for _, pod := range pods {
		if pod.came != pods[0].came {
			return inPart
		}
	}
	return pods[0].came
}

// rejoins gives the link back at a time, and says whether the API server has the node Ready
// in this boot soon after.
func rejoins(ctx context.Context, boot *edgenode.Boot, at time.Time) bool {
	GinkgoHelper()
	time.Sleep(time.Until(at))
	Expect(node.RestoreWAN(ctx)).To(Succeed())
	for end := time.Now().Add(3 * targetOfTwo); time.Now().Before(end); time.Sleep(poll) {
		n, err := client.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue && n.Status.NodeInfo.BootID == boot.ID {
				return true
			}
		}
	}
	return false
}
