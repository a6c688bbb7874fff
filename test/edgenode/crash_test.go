package edgenode_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"rekindle.edge/test/cluster"
	"rekindle.edge/test/edgenode"
	"rekindle.edge/test/internal/lab"
)

// holdEnv makes this test binary a run that holds a node until it is killed.
const holdEnv = "REKINDLE_TEST_HOLD_NODE"

func TestHoldNode(t *testing.T) {
	if os.Getenv(holdEnv) == "" {
		t.Skip("a helper of the spec about a run that dies")
	}
	ctx := context.Background()
	c, err := cluster.Start(ctx, cluster.Options{Nodes: true})
	if err != nil {
		t.Fatal(err)
	}
	node, err := edgenode.New(ctx, c, edgenode.Options{Name: "held"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := node.FirstBoot(ctx); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("held %d %s\n", c.Lab().Number, c.Lab().Dir)
	select {}
}

var _ = Describe("A run that is killed", func() {
	It("leaves nothing that the next run does not remove", func(ctx SpecContext) {
		holder := exec.Command(os.Args[0], "-test.run=^TestHoldNode$")
		holder.Env = append(os.Environ(), holdEnv+"=1")
		stdout, err := holder.StdoutPipe()
		Expect(err).NotTo(HaveOccurred())
		Expect(holder.Start()).To(Succeed())
		DeferCleanup(func() { _ = holder.Process.Kill() })

		var number int
		var dir string
		for lines := bufio.NewScanner(stdout); dir == "" && lines.Scan(); {
			_, _ = fmt.Sscanf(lines.Text(), "held %d %s", &number, &dir)
		}
		Expect(dir).NotTo(BeEmpty(), "the run that holds a node ended")
		Expect(holder.Process.Kill()).To(Succeed())
		_ = holder.Wait()
		Expect(lab.Leftovers(ctx, number, dir)).To(ContainElements(
			dir, ContainSubstring("kube-apiserver"), ContainSubstring("network namespace"), HaveSuffix("/nodes/held/root")))

		next, err := lab.Open(ctx)
		Expect(err).NotTo(HaveOccurred())
		defer next.Close()
		if next.Number == number {
			// The number is free again, so what has it now is the new lab's directory.
			Expect(next.Close()).To(Succeed())
		}
		Eventually(lab.Leftovers).WithContext(ctx).WithArguments(number, dir).WithTimeout(5 * time.Second).Should(BeEmpty())
	}, SpecTimeout(startTimeout))
})
