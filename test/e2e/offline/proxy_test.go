package offline

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"rekindle.edge/test/edgenode"
	"rekindle.edge/test/scenario/spec"
)

var _ = Describe("kube-proxy through the local API", func() {
	It("leads to pods at the addresses they have after a restart that is cut off", func(ctx SpecContext) {
		By("kube-proxy has its own token, and the local API")
		spec.ProxyThroughAgent(ctx, client, node)
		url := spec.Service(ctx, client, "shop", podName(0))
		// From the node, and from within another pod.
		reach := func() error {
			curl := []string{"curl", "-sf", "--max-time", "2", url}
			said, err := node.Exec(ctx, curl...)
			if err == nil {
				said, err = node.Exec(ctx, append([]string{"nsenter", "--net=/proc/" + process(ctx, podName(1)) + "/ns/net", "--"}, curl...)...)
			}
			if err == nil && strings.TrimSpace(said) != podName(0) {
				err = fmt.Errorf("%q answers", said)
			}
			return err
		}
		Eventually(ctx, reach).WithTimeout(soon).WithPolling(time.Second).Should(Succeed(), func() string { return tail("kube-proxy.log") + journal() })

		By("the node restarts cut off")
		was := upstreamPods(ctx)[podName(0)].Status.PodIP
		powerCut(ctx, edgenode.WANBlackhole)
		waitReadyHere(ctx, allPods()...)
		output, err := kubectl(ctx, "get", "pod", podName(0), "-o", "jsonpath={.status.podIP}")
		Expect(err).NotTo(HaveOccurred(), output)
		AddReportEntry("address before and after", was+" "+output)
		Eventually(ctx, reach).WithTimeout(soon).WithPolling(time.Second).Should(Succeed(), func() string { return tail("kube-proxy.log") + journal() })
		Expect(node.RestoreWAN(ctx)).To(Succeed())
		inStep(ctx)
	}, SpecTimeout(5*time.Minute))
})
