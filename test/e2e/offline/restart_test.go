package offline

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/test/edgenode"
	"rekindle.edge/test/scenario"
)

// upstreamPods are the pods as the API server has them, by name.
func upstreamPods(ctx context.Context) map[string]corev1.Pod {
	GinkgoHelper()
	list, err := client.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	byName := map[string]corev1.Pod{}
	for _, pod := range list.Items {
		byName[pod.Name] = pod
	}
	return byName
}

var _ = Describe("A node that restarts cut off", func() {
	for _, wan := range []edgenode.WANMode{edgenode.WANBlackhole, edgenode.WANRefused, edgenode.WANLinkDown, edgenode.WANNoRoute} {
		It("brings its pods back from its own disk: "+string(wan), func(ctx SpecContext) {
			if wan != edgenode.WANBlackhole {
				full()
			}
			before := upstreamPods(ctx)
			powerCut(ctx, wan)
			took := waitReadyHere(ctx, allPods()...)
			AddReportEntry("last pod Ready after kernel start", took.String())

			By("the link comes back")
			Expect(node.RestoreWAN(ctx)).To(Succeed())
			Eventually(ctx, func(g Gomega) {
				after := upstreamPods(ctx)
				for name, was := range before {
					now, ok := after[name]
					g.Expect(ok).To(BeTrue(), "%s is gone", name)
					g.Expect(now.UID).To(Equal(was.UID), "%s was made anew", name)
					g.Expect(scenario.Ready(&now)).To(BeTrue(), "%s", name)
					g.Expect(now.Status.ContainerStatuses[0].ContainerID).NotTo(Equal(was.Status.ContainerStatuses[0].ContainerID),
						"the API server has %s as it was before", name)
					g.Expect(now.Status.ContainerStatuses[0].RestartCount).To(Equal(was.Status.ContainerStatuses[0].RestartCount+1), "%s", name)
				}
			}).WithTimeout(soon).WithPolling(time.Second).Should(Succeed(), journal)
		}, SpecTimeout(5*time.Minute))
	}
})
