package offline

import (
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"rekindle.edge/test/edgenode"
)

// pkiDir is where kubelet makes its serving certificate.
const pkiDir = "/var/lib/kubelet/pki"

// emptyCertificate leaves what a power cut seconds after kubelet's first start leaves.
func emptyCertificate(root string) error {
	for _, name := range []string{"kubelet.crt", "kubelet.key"} {
		if err := os.Truncate(filepath.Join(root, pkiDir, name), 0); err != nil {
			return err
		}
	}
	return nil
}

var _ = Describe("A node whose kubelet finds an empty serving certificate", func() {
	It("never starts its pods without the agent, and does with it, cut off", func(ctx SpecContext) {
		inStep(ctx)
		time.Sleep(batch)
		shell(ctx, "sync")
		agent := func(from, to string) func(string) error {
			return func(root string) error {
				return os.Rename(filepath.Join(root, "local-bin", from), filepath.Join(root, "local-bin", to))
			}
		}
		DeferCleanup(func(ctx SpecContext) {
			// A spec that failed half-way must not leave the node without its agent.
			if _, err := node.Exec(ctx, "test", "-e", binary); err != nil && node.Current() != nil {
				shell(ctx, "mv /usr/local/bin/rekindle-away "+binary)
			}
		})
		By("without the agent, the API server in reach")
		Expect(node.PowerCut(ctx)).To(Succeed())
		Expect(node.EditDisk(ctx, emptyCertificate)).To(Succeed())
		Expect(node.EditDisk(ctx, agent("rekindle-agent", "rekindle-away"))).To(Succeed())
		_, err := node.Boot(ctx)
		Expect(err).NotTo(HaveOccurred())
		waitKubelet(ctx)
		Eventually(ctx, func(g Gomega) {
			witness, err := node.Current().Witness()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(len(witness.KubeletStarts)).To(BeNumerically(">", 1), "kubelet lives")
			g.Expect(witness.Ready).To(BeEmpty())
		}).WithTimeout(soon).WithPolling(poll).Should(Succeed(), journal)
		log, err := os.ReadFile(filepath.Join(node.Current().Logs, "kubelet.log"))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(log)).To(ContainSubstring("missing content for serving cert"))

		By("with it, and without the API server")
		Expect(node.PowerCut(ctx)).To(Succeed())
		Expect(node.EditDisk(ctx, agent("rekindle-away", "rekindle-agent"))).To(Succeed())
		Expect(node.EditDisk(ctx, emptyCertificate)).To(Succeed())
		Expect(node.CutWAN(ctx, edgenode.WANLinkDown)).To(Succeed())
		_, err = node.Boot(ctx)
		Expect(err).NotTo(HaveOccurred())
		waitReadyHere(ctx, allPods()...)
		Expect(shell(ctx, "ls "+pkiDir)).To(ContainSubstring("kubelet.crt.damaged"))
		Expect(shell(ctx, "wc -c < "+pkiDir+"/kubelet.crt")).NotTo(Equal("0"))
		Expect(node.RestoreWAN(ctx)).To(Succeed())
		inStep(ctx)

		By("what kubelet made is on the disk seconds later")
		time.Sleep(2 * time.Second)
		Expect(node.PowerCut(ctx)).To(Succeed())
		Expect(node.EditDisk(ctx, func(root string) error {
			cert, err := os.ReadFile(filepath.Join(root, pkiDir, "kubelet.crt"))
			Expect(string(cert)).To(ContainSubstring("END CERTIFICATE"))
			return err
		})).To(Succeed())
		_, err = node.Boot(ctx)
		Expect(err).NotTo(HaveOccurred())
		inStep(ctx)
	}, SpecTimeout(5*time.Minute))
})
