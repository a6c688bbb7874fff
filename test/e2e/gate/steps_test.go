package gate

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"

	"rekindle.edge/test/edgenode"
)

var _ = Describe("The record of a recovery", func() {
	It("says what the start of the slowest pod was made of", func(ctx SpecContext) {
		node := newEdge(ctx, "edge-steps", true, nil)
		var pods []*corev1.Pod
		var names []string
		for i := range 6 {
			names = append(names, fmt.Sprintf("steps-%d", i))
			pods = append(pods, edgenode.WebPod(names[i], node.Name))
		}
		node.order(ctx)
		DeferCleanup(node.endOrder)
		node.create(ctx, pods...)
		node.settle(ctx)
		boot := node.powerCut(ctx)
		node.waitReady(ctx, soon, names...)
		slowest := node.record(ctx).SlowestPods[0]
		steps := slowest.Steps
		Expect(steps).NotTo(BeNil())
		AddReportEntry(slowest.Pod, fmt.Sprintf("Ready at %d ms: %+v", *slowest.Milliseconds, *steps))

		for part, took := range map[string]int64{"sandbox": steps.Sandbox, "create": steps.Create, "start": steps.Start} {
			Expect(took).To(BeNumerically(">", 0), part)
		}
		Expect(steps.Pull).To(BeZero(), "its image is there")
		all := steps.Held + steps.Sandbox + steps.Create + steps.Start + steps.Kubelet
		Expect(all).To(BeNumerically("<=", *slowest.Milliseconds), "the parts are more than the whole")

		// Containerd's own log is the witness.
		name := strings.TrimPrefix(slowest.Pod, "default/")
		witness, err := boot.Witness()
		Expect(err).NotTo(HaveOccurred())
		for _, sandbox := range witness.Sandboxes {
			if sandbox.Pod == slowest.Pod {
				took := boot.Since(sandbox.Returned) - node.begun()[name][0]
				Expect(steps.Sandbox).To(BeNumerically("~", took.Milliseconds(), 150))
				return
			}
		}
		Fail("containerd's log has no sandbox of " + slowest.Pod)
	}, SpecTimeout(3*time.Minute))
})
