package edgenode_test

import (
	"fmt"
	"net/url"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"rekindle.edge/test/edgenode"
)

var _ = Describe("A WAN cut", Ordered, func() {
	var node *edgenode.Node

	BeforeAll(func(ctx SpecContext) {
		node, _ = firstBoot(ctx, edgenode.Options{Name: "wan"})
	}, NodeTimeout(startTimeout))

	DescribeTable("is felt as its mode says, and over when restored",
		func(ctx SpecContext, mode edgenode.WANMode, felt string) {
			Expect(connect(ctx, node)).To(Equal("connected"))
			Expect(node.CutWAN(ctx, mode)).To(Succeed())
			Expect(connect(ctx, node)).To(ContainSubstring(felt))
			Expect(node.RestoreWAN(ctx)).To(Succeed())
			Eventually(connect).WithContext(ctx).WithArguments(node).WithPolling(poll).Should(Equal("connected"))
		},
		Entry("a black hole: no answer at all", edgenode.WANBlackhole, "no answer", SpecTimeout(startTimeout)),
		Entry("refused: an answer at once, and it is no", edgenode.WANRefused, "Connection refused", SpecTimeout(startTimeout)),
		Entry("link down: no carrier", edgenode.WANLinkDown, "no carrier", SpecTimeout(startTimeout)),
		Entry("no route: the node itself says so", edgenode.WANNoRoute, "Network is unreachable", SpecTimeout(startTimeout)),
	)

	It("lasts over a power cut", func(ctx SpecContext) {
		Expect(node.CutWAN(ctx, edgenode.WANRefused)).To(Succeed())
		Expect(node.PowerCut(ctx)).To(Succeed())
		_, err := node.Boot(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(connect(ctx, node)).To(ContainSubstring("Connection refused"))
		Expect(node.RestoreWAN(ctx)).To(Succeed())
		Expect(node.WaitReady(ctx)).To(Succeed())
	}, SpecTimeout(startTimeout))
})

// connect says what becomes of a connection from the node to the API server.
func connect(ctx SpecContext, node *edgenode.Node) string {
	GinkgoHelper()
	if strings.TrimSpace(run(ctx, node, "cat", "/sys/class/net/eth0/carrier")) == "0" {
		return "no carrier"
	}
	server, err := url.Parse(shared.Admin().Host)
	Expect(err).NotTo(HaveOccurred())
	script := fmt.Sprintf("(: </dev/tcp/%s/%s) && echo connected", server.Hostname(), server.Port())
	return strings.TrimSpace(run(ctx, node, "sh", "-c", `timeout 2 bash -c "$0" 2>&1; [ $? = 124 ] && echo no answer; true`, script))
}
