package wiring

import (
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/test/edgenode"
	"rekindle.edge/test/scenario"
)

// REKINDLE_AGENT_BEFORE is the program of the version to upgrade from.
var _ = Describe("an agent of the version before", func() {
	It("is upgraded without a restart of a pod", func(ctx SpecContext) {
		old := os.Getenv("REKINDLE_AGENT_BEFORE")
		if old == "" {
			Skip("REKINDLE_AGENT_BEFORE names no program")
		}
		node := newNode(ctx, "edge-upgrade")
		_, err := node.FirstBoot(ctx)
		Expect(err).NotTo(HaveOccurred())
		createPods(ctx, node)
		before, running := tree(ctx, node), containers(ctx, node)
		program, err := os.Open(old)
		Expect(err).NotTo(HaveOccurred())
		defer func() { _ = program.Close() }()
		_, err = node.ExecInput(ctx, program, "sh", "-c", "mkdir /tmp/before; cat > /tmp/before/rekindle-agent; chmod +x /tmp/before/rekindle-agent; /tmp/before/rekindle-agent install; cp "+binary+" /tmp/before/installed")
		Expect(err).NotTo(HaveOccurred(), "%s", journal(node))

		// The program under test was put where the old one is now; it comes from the host again.
		path, err := scenario.AgentBinary()
		Expect(err).NotTo(HaveOccurred())
		under, err := os.Open(path)
		Expect(err).NotTo(HaveOccurred())
		defer func() { _ = under.Close() }()
		output, err := node.ExecInput(ctx, under, "sh", "-c", "cat > /tmp/before/new; chmod +x /tmp/before/new; /tmp/before/new install; rm -r /tmp/before")
		Expect(err).NotTo(HaveOccurred(), "%s", journal(node))
		say("install: %s", output)
		Expect(isWired(ctx, node)).To(BeTrue())
		Expect(containers(ctx, node)).To(Equal(running))
		waitPodsReady(ctx, node)
		Consistently(ctx, isWired).WithArguments(node).WithTimeout(15*time.Second).WithPolling(time.Second).Should(BeTrue(), "the gate does not stay")

		pod := edgenode.WebPod("upgraded", node.Name)
		_, err = client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		waitReady(ctx, node, "default/upgraded", node.Current().Uptime()+soon)
		Expect(client.CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, "upgraded", metav1.DeleteOptions{})).To(Succeed())
		Eventually(ctx, func() ([]string, error) { return containers(ctx, node), nil }).WithTimeout(soon).WithPolling(poll).Should(Equal(running))

		_, err = node.Exec(ctx, binary, "uninstall")
		Expect(err).NotTo(HaveOccurred())
		Expect(cmp.Diff(before, tree(ctx, node))).To(BeEmpty())
		Expect(containers(ctx, node)).To(Equal(running))
	}, SpecTimeout(4*time.Minute))
})
