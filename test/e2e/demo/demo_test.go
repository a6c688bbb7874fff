// Package demo runs `make demo` as a user does and reads what it prints.
package demo

import (
	"os"
	"os/exec"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
)

func TestDemo(t *testing.T) {
	if os.Getenv("REKINDLE_E2E") == "" {
		t.Skip("needs root and minutes; run `make test-e2e`")
	}
	RegisterFailHandler(Fail)
	RunSpecs(t, "Demo")
}

var _ = It("ends with a node of the policy and a measured recovery", func(ctx SpecContext) {
	demo := exec.CommandContext(ctx, "make", "-C", "../../..", "demo")
	demo.Env = append(os.Environ(), "KEEP=")
	session, err := gexec.Start(demo, GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	Eventually(ctx, session).WithTimeout(10 * time.Minute).Should(gexec.Exit(0))

	Expect(session.Out).To(gbytes.Say(`the verdict of edge-1: The node would come back by itself`))
	Expect(session.Out).To(gbytes.Say(`10 pods are ready again, cut off`))
	Expect(session.Out).To(gbytes.Say(`after PowerLoss, Offline: 10 of 10 pods Ready, Complete`))
	for _, phase := range []string{"kernel", "userspace", "kubeletStart", "nodeList", "podList", "firstSandbox", "firstReady", "lastReady"} {
		Expect(session.Out).To(gbytes.Say(phase + ` +\d+ +\d+`))
	}
	Expect(session.Out).To(gbytes.Say(`edgerecoverypolicy\S*/edge-pools +1 +1 +30 +\d+ +True`))
	Expect(session.Out).To(gbytes.Say(`noderecovery\S*/edge-1 +stores +True +WouldComeBack +True +\d+ +True`))
})
