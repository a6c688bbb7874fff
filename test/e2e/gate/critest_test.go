package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/ginkgo/v2/types"
)

const (
	// criWithout are specs that cannot pass here whatever the gate does: of an image that is named by the digest of its
	// content, of one whose program is setuid, and of many images.
	criWithout = `public image with digest|NoNewPrivs|benchmark`
	// criEnough is how many specs of the suite must at least have passed.
	criEnough = 100
)

var _ = Describe("The CRI validation suite", func() {
	It("has the same results with the gate and without", func(ctx SpecContext) {
		full()
		for _, program := range []string{filepath.Join(shared.Tools(), "critest"), "/usr/bin/busybox"} {
			if _, err := os.Stat(program); err != nil {
				Skip(program + " is missing; make bin/tools/critest, and Debian's busybox")
			}
		}
		node := newEdge(ctx, "edge-critest", true, nil)
		// Kubelet would end pods that it does not know.
		Expect(node.Systemctl(ctx, "stop", "kubelet.service")).To(Succeed())
		serveCRIImages(ctx, node)

		without := critest(ctx, node, "unix:///run/containerd/containerd.sock")
		with := critest(ctx, node, "unix:///run/rekindle/cri.sock")
		Expect(cmp.Diff(without, with)).To(BeEmpty(), "-without +with the gate")
		passed, failed := 0, []string{}
		for spec, state := range with {
			switch state {
			case types.SpecStatePassed.String():
				passed++
			case types.SpecStateSkipped.String(), types.SpecStatePending.String():
			default:
				failed = append(failed, spec)
			}
		}
		AddReportEntry("results", fmt.Sprintf("%d specs, %d passed both ways; failed both ways:\n%s", len(with), passed, strings.Join(failed, "\n")))
		Expect(passed).To(BeNumerically(">=", criEnough))
	}, SpecTimeout(15*time.Minute))
})

// critest runs the suite on the node against a socket and gives the state of each spec.
func critest(ctx context.Context, node *edge, endpoint string) map[string]string {
	GinkgoHelper()
	const report = "/tmp/critest.json"
	began := time.Now()
	// The same order each time; that specs fail is no failure of ours.
	output, failure := node.Exec(ctx, "critest", "-runtime-endpoint="+endpoint, "-ginkgo.seed=1", "-ginkgo.no-color",
		"-ginkgo.skip="+criWithout, "-ginkgo.timeout=5m", "-ginkgo.json-report="+report)
	content, err := node.Exec(ctx, "cat", report)
	Expect(err).NotTo(HaveOccurred(), "%v\n%s", failure, output)
	var reports []types.Report
	Expect(json.Unmarshal([]byte(content), &reports)).To(Succeed())
	states := map[string]string{}
	for _, report := range reports {
		for _, spec := range report.SpecReports {
			if spec.LeafNodeType == types.NodeTypeIt {
				states[spec.FullText()] = spec.State.String()
			}
		}
	}
	say("critest %s: %d specs in %s", endpoint, len(states), time.Since(began).Round(time.Second))
	return states
}
