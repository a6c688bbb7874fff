package spec

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"rekindle.edge/test/cluster"
	"rekindle.edge/test/edgenode"
	"rekindle.edge/test/scenario"
)

const (
	// Binary is where the agent's program lies on a node.
	Binary = "/usr/local/bin/rekindle-agent"
	// batch is more than the agent takes to write changes to the disk.
	batch = 5 * time.Second
	// shown is how much of a log is shown of a spec that failed, in bytes.
	shown = 20000
)

// NewNode makes a node that is off, with the agent's program at hand but not installed.
// $REKINDLE_KUBELET picks its kubelet, newest or oldest. It is off again at the end of the
// spec or suite that made it.
func NewNode(ctx context.Context, c *cluster.Cluster, name string, change ...func(*edgenode.Options)) *edgenode.Node {
	GinkgoHelper()
	binary, err := scenario.AgentBinary()
	Expect(err).NotTo(HaveOccurred())
	options := edgenode.Options{
		Name: name, Kubelet: edgenode.KubeletVersion(os.Getenv("REKINDLE_KUBELET")),
		Agent: &edgenode.Agent{Binary: binary}, Log: Say,
	}
	for _, change := range change {
		change(&options)
	}
	node, err := edgenode.New(ctx, c, options)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		if node.Current() != nil {
			Expect(node.PowerCut(ctx)).To(Succeed())
		}
	})
	return node
}

// FirstBoot boots a node that is new.
func FirstBoot(ctx context.Context, node *edgenode.Node) {
	GinkgoHelper()
	_, err := node.FirstBoot(ctx)
	Expect(err).NotTo(HaveOccurred())
}

// Install runs rekindle-agent install and gives what it said.
func Install(ctx context.Context, node *edgenode.Node) string {
	GinkgoHelper()
	output, err := node.Exec(ctx, Binary, "install")
	Expect(err).NotTo(HaveOccurred(), func() string { return Journal(node) })
	Say("%s: install: %s", node.Name, output)
	return output
}

// Shell runs a line on a node and gives what it prints.
func Shell(ctx context.Context, node *edgenode.Node, line string) string {
	GinkgoHelper()
	output, err := node.Exec(ctx, "/bin/sh", "-ec", line)
	Expect(err).NotTo(HaveOccurred(), "%s", output)
	return strings.TrimSpace(output)
}

// Settle has all changes on the disk.
func Settle(ctx context.Context, node *edgenode.Node) {
	GinkgoHelper()
	time.Sleep(batch)
	Shell(ctx, node, "sync")
}

// PowerCut takes the power, and boots with the WAN as it is said to be. What was not synced
// is lost.
func PowerCut(ctx context.Context, node *edgenode.Node, wan edgenode.WANMode) *edgenode.Boot {
	GinkgoHelper()
	Expect(node.PowerCut(ctx)).To(Succeed())
	Expect(node.CutWAN(ctx, wan)).To(Succeed())
	return Boot(ctx, node)
}

// Boot boots a node that is off.
func Boot(ctx context.Context, node *edgenode.Node) *edgenode.Boot {
	GinkgoHelper()
	boot, err := node.Boot(ctx)
	Expect(err).NotTo(HaveOccurred())
	return boot
}

// Journal is what a node tells of a spec that failed.
func Journal(node *edgenode.Node) string {
	if node.Current() == nil {
		return node.Name + " is off"
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	said, err := node.Exec(ctx, "sh", "-c", "systemctl --no-pager --failed; journalctl --no-pager -n 200 -o short-precise")
	text := fmt.Sprintf("%s: %s\n%v\n", node.Name, said, err)
	for _, name := range []string{"agent.log", "kubelet.log", "containerd.log"} {
		text += name + "\n" + Tail(node, name) + "\n"
	}
	return text
}

// Log is a witness's log of this boot.
func Log(node *edgenode.Node, name string) string {
	data, err := os.ReadFile(filepath.Join(node.Current().Logs, name))
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// Tail is the end of a witness's log of this boot.
func Tail(node *edgenode.Node, name string) string {
	log := Log(node, name)
	return log[max(0, len(log)-shown):]
}
