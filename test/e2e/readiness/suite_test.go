// Package readiness shows on a real node that the verdict before an outage is what the
// outage then brings.
package readiness

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/client-go/kubernetes"

	"rekindle.edge/test/cluster"
	"rekindle.edge/test/edgenode"
	"rekindle.edge/test/images"
	"rekindle.edge/test/scenario"
)

const (
	binary   = "/usr/local/bin/rekindle-agent"
	nodeName = "edge-1"
	poll     = 200 * time.Millisecond
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

func TestReadiness(t *testing.T) {
	if os.Getenv("REKINDLE_E2E") == "" {
		t.Skip("needs root and minutes; run `make test-e2e`")
	}
	RegisterFailHandler(Fail)
	suite, reporter := GinkgoConfiguration()
	suite.Timeout = time.Hour
	RunSpecs(t, "Readiness", suite, reporter)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	shared, err = cluster.Start(ctx, cluster.Options{Nodes: true, Log: say})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(shared.Stop()).To(Succeed()) })
	client, err = kubernetes.NewForConfig(shared.Admin())
	Expect(err).NotTo(HaveOccurred())
	kubectl(ctx, "apply", "-f", "../../../config/rbac/node.yaml")
	kubectl(ctx, "apply", "-k", "../../../config/crd")
	web, err = images.BuildStatic(ctx, "rekindle.edge/test/images/web", GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	address := serveRegistry()

	agent, err := scenario.AgentBinary()
	Expect(err).NotTo(HaveOccurred())
	node, err = edgenode.New(ctx, shared, edgenode.Options{
		Name: nodeName, Kubelet: edgenode.KubeletVersion(os.Getenv("REKINDLE_KUBELET")),
		Agent: &edgenode.Agent{Binary: agent}, Log: say,
	})
	Expect(err).NotTo(HaveOccurred())
	_, err = node.FirstBoot(ctx)
	Expect(err).NotTo(HaveOccurred())
	setPolicy(ctx, target, "")
	write(ctx, "/etc/containerd/certs.d/"+registryName+"/hosts.toml", "server = \"http://"+address+"\"\n")
	shell(ctx, binary+" install")
})

var _ = JustAfterEach(func() {
	if CurrentSpecReport().Failed() && node != nil {
		say("%s", journal())
	}
})

func say(format string, args ...any) { GinkgoWriter.Printf(format+"\n", args...) }

// kubectl runs as the cluster's administrator.
func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, filepath.Join(shared.Tools(), "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+shared.AdminKubeconfig())
	said, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", said)
	return string(said)
}
