// Package gate shows on real nodes that the runtime gate brings pods back in order and at
// once, and leaves nothing behind.
package gate

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"rekindle.edge/test/cluster"
	"rekindle.edge/test/edgenode"
)

const (
	poll = 200 * time.Millisecond
	// soon bounds what takes a healthy node some seconds on an idle machine.
	soon = time.Minute
	// batch is more than the agent takes to write changes to the disk.
	batch = 5 * time.Second
)

var (
	shared *cluster.Cluster
	client kubernetes.Interface
)

func TestGate(t *testing.T) {
	if os.Getenv("REKINDLE_E2E") == "" {
		t.Skip("needs root and minutes; run `make test-e2e`")
	}
	RegisterFailHandler(Fail)
	suite, reporter := GinkgoConfiguration()
	suite.Timeout = time.Hour
	RunSpecs(t, "Gate", suite, reporter)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	shared, err = cluster.Start(ctx, cluster.Options{Nodes: true, Log: say})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(shared.Stop()).To(Succeed()) })
	client, err = kubernetes.NewForConfig(shared.Admin())
	Expect(err).NotTo(HaveOccurred())

	// What a node may read beside what every kubelet may.
	apply(ctx, "../../../config/rbac/node.yaml")
})

// apply a file of the product's as the administrator of the cluster.
func apply(ctx context.Context, file string) {
	GinkgoHelper()
	command := exec.CommandContext(ctx, filepath.Join(shared.Tools(), "kubectl"), "apply", "-f", file)
	command.Env = append(os.Environ(), "KUBECONFIG="+shared.AdminKubeconfig())
	said, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", said)
}

func full() {
	if os.Getenv("FULL") == "" {
		Skip("set FULL=1")
	}
}

func say(format string, args ...any) { GinkgoWriter.Printf(format+"\n", args...) }

// An edge is a node of one spec.
type edge struct{ *edgenode.Node }

// newEdge boots a node for this spec, with the agent installed if it is asked for. Edit
// changes its disk before the first boot. The spec's end takes it and its pods away.
func newEdge(ctx context.Context, name string, agent bool, edit func(root string) error, change ...func(*edgenode.Options)) *edge {
	GinkgoHelper()
	options := edgenode.Options{Name: name, Kubelet: edgenode.KubeletVersion(os.Getenv("REKINDLE_KUBELET")), Log: say}
	for _, c := range change {
		c(&options)
	}
	if agent {
		binary := os.Getenv("REKINDLE_AGENT")
		if binary == "" {
			binary = "../../../bin/rekindle-agent"
		}
		options.Agent = &edgenode.Agent{Binary: binary}
	}
	node, err := edgenode.New(ctx, shared, options)
	Expect(err).NotTo(HaveOccurred())
	e := &edge{node}
	DeferCleanup(func(ctx SpecContext) {
		if CurrentSpecReport().Failed() {
			say("%s", e.journal())
		}
		if node.Current() != nil {
			Expect(node.PowerCut(ctx)).To(Succeed())
		}
		now := int64(0)
		Expect(client.CoreV1().Pods(metav1.NamespaceDefault).DeleteCollection(ctx,
			metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})).To(Succeed())
	})
	if edit != nil {
		Expect(node.EditDisk(ctx, edit)).To(Succeed())
	}
	_, err = node.FirstBoot(ctx)
	Expect(err).NotTo(HaveOccurred())
	if agent {
		output, err := node.Exec(ctx, "/usr/local/bin/rekindle-agent", "install")
		Expect(err).NotTo(HaveOccurred(), e.journal)
		say("%s: install: %s", name, output)
	}
	return e
}

// create makes pods and waits until those that serve are Ready and the others have ended.
func (e *edge) create(ctx context.Context, pods ...*corev1.Pod) {
	GinkgoHelper()
	for _, pod := range pods {
		_, err := client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	Eventually(ctx, func(g Gomega) {
		for _, pod := range pods {
			now, err := client.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, pod.Name, metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(ready(now) || now.Status.Phase == corev1.PodSucceeded).To(BeTrue(), "%s: %+v", pod.Name, now.Status)
		}
	}).WithTimeout(2*soon+time.Duration(len(pods))*time.Second).WithPolling(time.Second).Should(Succeed(), e.journal)
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// settle has all changes on the disk.
func (e *edge) settle(ctx context.Context) {
	GinkgoHelper()
	time.Sleep(batch)
	_, err := e.Exec(ctx, "sync")
	Expect(err).NotTo(HaveOccurred())
}

// powerCut takes the power and boots; what was not synced is lost.
func (e *edge) powerCut(ctx context.Context) *edgenode.Boot {
	GinkgoHelper()
	Expect(e.PowerCut(ctx)).To(Succeed())
	boot, err := e.Boot(ctx)
	Expect(err).NotTo(HaveOccurred())
	return boot
}

// ready counts the pods of this boot that kubelet's log has Ready.
func (e *edge) ready(names ...string) int {
	GinkgoHelper()
	witness, err := e.Current().Witness()
	Expect(err).NotTo(HaveOccurred())
	count := 0
	for _, name := range names {
		if _, ok := witness.FirstReady("default/" + name); ok {
			count++
		}
	}
	return count
}

// waitReady waits until pods are Ready in this boot, and gives when the last was, since
// kernel start.
func (e *edge) waitReady(ctx context.Context, within time.Duration, names ...string) time.Duration {
	GinkgoHelper()
	Eventually(ctx, func() int { return e.ready(names...) }).WithTimeout(within).WithPolling(poll).Should(Equal(len(names)), e.journal)
	witness, err := e.Current().Witness()
	Expect(err).NotTo(HaveOccurred())
	var last time.Duration
	for _, name := range names {
		first, _ := witness.FirstReady("default/" + name)
		last = max(last, e.Current().Since(first).Round(time.Millisecond))
	}
	return last
}

// sandboxes are the node's, by id: whether each is ready.
func (e *edge) sandboxes(ctx context.Context) map[string]bool {
	GinkgoHelper()
	connection, err := e.CRI()
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = connection.Close() }()
	list, err := runtimeapi.NewRuntimeServiceClient(connection).ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	Expect(err).NotTo(HaveOccurred())
	all := map[string]bool{}
	for _, sandbox := range list.GetItems() {
		all[sandbox.GetId()] = sandbox.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY
	}
	return all
}

func (e *edge) journal() string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if e.Current() == nil {
		return e.Name + " is off"
	}
	output, err := e.Exec(ctx, "journalctl", "--no-pager", "-n", "200", "-o", "short-precise", "-u", "rekindle-agent")
	return fmt.Sprintf("%s: agent %v\n%s\nkubelet\n%s\ncontainerd\n%s", e.Name, err, output, e.tail("kubelet.log"), e.tail("containerd.log"))
}

func (e *edge) tail(name string) string {
	data := e.log(name)
	return data[max(0, len(data)-15000):]
}

func (e *edge) log(name string) string {
	data, err := os.ReadFile(filepath.Join(e.Current().Logs, name))
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func numbered(name string, count int) []string {
	var names []string
	for i := range count {
		names = append(names, fmt.Sprintf("%s-%d", name, i))
	}
	return names
}

func webPods(node string, names ...string) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, name := range names {
		pods = append(pods, edgenode.WebPod(name, node))
	}
	return pods
}
