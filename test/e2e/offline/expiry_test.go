package offline

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"rekindle.edge/test/edgenode"
)

// certificateLife is enough for a boot and the return of all pods.
const certificateLife = 50 * time.Second

// rotates has kubelet rotate its certificate, as kubeadm does, and gives it this one. The
// node must be off.
func rotates(pair []byte) func(root string) error {
	return func(root string) error {
		if err := os.WriteFile(filepath.Join(root, pem), pair, 0o600); err != nil {
			return err
		}
		path := filepath.Join(root, "var/lib/kubelet/config.yaml")
		config, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, append(bytes.TrimSpace(config), "\nrotateCertificates: true\n"...), 0o644)
	}
}

// off takes the power once all is on the disk.
func off(ctx context.Context) {
	GinkgoHelper()
	time.Sleep(batch)
	shell(ctx, "sync")
	Expect(node.PowerCut(ctx)).To(Succeed())
}

var _ = Describe("A kubelet whose certificate expires while it is cut off", func() {
	BeforeEach(full)

	It("lives on with its pods, and starts again with them", func(ctx SpecContext) {
		off(ctx)
		Expect(node.SaveDisk(ctx, "valid")).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			if node.Current() != nil {
				Expect(node.PowerCut(ctx)).To(Succeed())
			}
			Expect(node.RestoreDisk(ctx, "valid")).To(Succeed())
		})
		ends := time.Now().Add(certificateLife)
		pair, err := shared.ShortLived(nodeName, certificateLife)
		Expect(err).NotTo(HaveOccurred())
		Expect(node.EditDisk(ctx, rotates(pair))).To(Succeed())
		Expect(node.CutWAN(ctx, edgenode.WANBlackhole)).To(Succeed())
		_, err = node.Boot(ctx)
		Expect(err).NotTo(HaveOccurred())
		waitReadyHere(ctx, allPods()...)
		Expect(time.Now()).To(BeTemporally("<", ends), "the pods came back too late for what is to be shown")
		kubelet := shell(ctx, "systemctl show -p MainPID --value kubelet.service")

		By("the certificate expires")
		time.Sleep(time.Until(ends))
		// Kubelet opens new connections then, as it does when the agent has been restarted.
		Expect(node.Systemctl(ctx, "restart", "rekindle-agent.service")).To(Succeed())
		restarts := func() string {
			count, _ := kubectl(ctx, "get", "pod", podName(2), "-o", "'jsonpath={.status.containerStatuses[0].restartCount}'")
			return count
		}
		before := restarts()
		shell(ctx, "kill "+process(ctx, podName(2)))
		Eventually(ctx, restarts).WithTimeout(soon).WithPolling(time.Second).ShouldNot(Equal(before), journal)
		// It looks at its certificate every ten seconds.
		Consistently(ctx, func() string { return shell(ctx, "systemctl show -p MainPID --value kubelet.service") }).
			WithTimeout(25 * time.Second).WithPolling(time.Second).Should(Equal(kubelet))
		Expect(tail("kubelet.log")).To(ContainSubstring("Current certificate is expired"), "nothing is shown")

		By("the node restarts with it")
		powerCut(ctx, edgenode.WANBlackhole)
		AddReportEntry("last pod Ready after kernel start", waitReadyHere(ctx, allPods()...).String())
	}, SpecTimeout(6*time.Minute))
})
