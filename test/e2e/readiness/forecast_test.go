package readiness

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/edgenode"
)

// plan is what a node has to start, and how.
type plan struct {
	name, fields string
	pods         []*corev1.Pod
	cuts         int
}

// named are web pods, each with these changes.
func named(prefix string, count int, changes ...change) []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range count {
		pod := edgenode.WebPod(fmt.Sprintf("%s-%d", prefix, i), nodeName)
		for _, change := range changes {
			change(pod)
		}
		pods = append(pods, pod)
	}
	return pods
}

// slow has a pod that is asked late whether it is ready.
func slow(pod *corev1.Pod) { pod.Spec.Containers[0].ReadinessProbe.InitialDelaySeconds = 20 }

func labelled(pod *corev1.Pod) { pod.Labels["stage"] = "first" }

const twoStages = `, startupOrdering: {stages: [{name: first, pods: [{labelSelector: {matchLabels: {stage: first}}}], waitFor: Ready, timeoutSeconds: 60}, {name: rest, pods: [{namespaces: [default]}], waitFor: Started, timeoutSeconds: 60}]}`

// plans differ in stages, in how many pods they have, and in how long these take. The first
// forecast of all but the first is made of what was measured on others.
var plans = []plan{
	{name: "4 pods", pods: named("few", 4), cuts: 4},
	{name: "12 pods in two stages", fields: twoStages, pods: slices.Concat(named("first", 4, labelled), named("rest", 8)), cuts: 4},
	{name: "6 pods, one of them slow", pods: slices.Concat(named("quick", 5), named("slow", 1, slow)), cuts: 4},
}

var _ = Describe("The forecast", func() {
	It("is what the next outage takes, whatever the plan", func(ctx SpecContext) {
		if !full() {
			Skip("not of the core; run `make test-e2e FULL=1`")
		}
		fresh(ctx, installed, nil)
		var errors []float64
		for _, p := range plans {
			setPolicy(ctx, target, p.fields)
			replacePods(ctx, p.pods)
			for range p.cuts {
				time.Sleep(batch) // the agent writes what has changed, and no more often
				forecast := status(ctx).Forecast
				measured := outage(ctx, p.pods)
				if forecast == nil || forecast.BasedOn == 0 {
					say("%-26s no forecast, measured %5d ms", p.name, measured.Milliseconds())
					continue
				}
				off := math.Abs(float64(forecast.TotalMilliseconds-measured.Milliseconds())) / float64(measured.Milliseconds())
				errors = append(errors, off)
				say("%-26s forecast %5d ms, measured %5d ms, off by %2.0f %% (of %d)", p.name, forecast.TotalMilliseconds, measured.Milliseconds(), 100*off, forecast.BasedOn)
			}
		}
		slices.Sort(errors)
		median := errors[len(errors)/2]
		say("forecasts: %d, median off by %.0f %%", len(errors), 100*median)
		Expect(len(errors)).To(BeNumerically(">=", 10))
		Expect(median).To(BeNumerically("<=", 0.25))
	}, SpecTimeout(20*time.Minute))
})

// replacePods has these pods on the node, Ready, and no others.
func replacePods(ctx context.Context, pods []*corev1.Pod) {
	GinkgoHelper()
	kubectl(ctx, "delete", "pods", "--all", "--grace-period=0", "--force")
	for _, pod := range pods {
		_, err := client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	for _, pod := range pods {
		Eventually(ctx, isAs).WithArguments(ctx, pod.Name, corev1.PodRunning).WithTimeout(soon).WithPolling(poll).Should(BeTrue(), "%s\n%s", pod.Name, journal)
	}
}

// outage has an outage, gives the time from kernel start until kubelet's log has the last
// pod Ready, and returns when the link is back and the status has the recovery.
func outage(ctx context.Context, pods []*corev1.Pod) time.Duration {
	GinkgoHelper()
	boot := cutOff(ctx)
	var last time.Duration
	Eventually(ctx, func(g Gomega) {
		witness, err := boot.Witness()
		g.Expect(err).NotTo(HaveOccurred())
		for _, pod := range pods {
			first, ok := witness.FirstReady(metav1.NamespaceDefault + "/" + pod.Name)
			g.Expect(ok).To(BeTrue(), pod.Name)
			last = max(last, boot.Since(first))
		}
	}).WithTimeout(soon).WithPolling(poll).Should(Succeed(), journal)
	Expect(node.RestoreWAN(ctx)).To(Succeed())
	Eventually(ctx, func() string {
		recoveries := status(ctx).Recoveries
		if len(recoveries) == 0 {
			return ""
		}
		return cmp.Or(strings.TrimSpace(recoveries[0].BootID+" "+string(recoveries[0].Result)), "none")
	}).WithTimeout(soon).WithPolling(poll).Should(Equal(boot.ID+" "+string(v1alpha1.RecoveryComplete)), journal)
	return last
}
