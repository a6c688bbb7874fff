// Package readiness shows on a real node that the verdict before an outage is what the
// outage then brings.
package readiness

import (
	"context"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/client-go/kubernetes"

	"rekindle.edge/test/cluster"
	"rekindle.edge/test/edgenode"
	"rekindle.edge/test/images"
	"rekindle.edge/test/scenario/spec"
)

const (
	binary   = spec.Binary
	nodeName = "edge-1"
	poll     = spec.Poll
	// soon bounds what takes a healthy node some seconds on an idle machine.
	soon = 2 * time.Minute
	// batch is more than the agent takes to write changes to the disk.
	batch = 5 * time.Second
	// flip is how soon the verdict must follow its cause.
	flip = 5 * time.Second
	// target of a recovery of many pods, and of the two of a row of the node. What must not
	// come back is judged at three times that.
	target, targetOfTwo = 30 * time.Second, 15 * time.Second
	// Saved disks: of a node with the agent and no pod of the API, and with two pods.
	installed, withTwo = "installed", "with two"
)

var (
	shared   *cluster.Cluster
	client   kubernetes.Interface
	node     *edgenode.Node
	web      string // the web server's program
	registry = images.Registry{User: "robot", Password: password}
)

// full says that everything is asked for, not only what is of the core.
func full() bool { return os.Getenv("REKINDLE_FULL") != "" }

func TestReadiness(t *testing.T) { spec.Run(t, "Readiness") }

var _ = BeforeSuite(func(ctx SpecContext) {
	shared = spec.Start(ctx, spec.RBAC, spec.CRDs)
	client = spec.Clientset(shared)
	var err error
	web, err = images.BuildStatic(ctx, "rekindle.edge/test/images/web", GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	address := serveRegistry()

	node = spec.NewNode(ctx, shared, nodeName)
	spec.FirstBoot(ctx, node)
	setPolicy(ctx, target, "")
	write(ctx, "/etc/containerd/certs.d/"+registryName+"/hosts.toml", "server = \"http://"+address+"\"\n")
	shell(ctx, binary+" install")
})

var _ = JustAfterEach(func() {
	if CurrentSpecReport().Failed() && node != nil {
		say("%s", journal())
	}
})

func say(format string, args ...any) { spec.Say(format, args...) }

// kubectl runs as the cluster's administrator.
func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	return spec.Kubectl(ctx, shared, "", args...)
}
