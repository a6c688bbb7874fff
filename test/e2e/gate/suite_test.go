// Package gate shows on real nodes that the runtime gate brings pods back in order and at
// once, and leaves nothing behind.
package gate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	"rekindle.edge/test/scenario/spec"
)

const (
	poll = spec.Poll
	soon = spec.Soon
)

var (
	shared *cluster.Cluster
	client kubernetes.Interface
)

func TestGate(t *testing.T) { spec.Run(t, "Gate") }

var _ = BeforeSuite(func(ctx SpecContext) {
	shared = spec.Start(ctx, spec.RBAC)
	client = spec.Clientset(shared)
})

// apply a file of the product's as the administrator of the cluster.
func apply(ctx context.Context, file string) {
	GinkgoHelper()
	spec.Kubectl(ctx, shared, "", "apply", "-f", file)
}

func full() { spec.Full() }

func say(format string, args ...any) { spec.Say(format, args...) }

// An edge is a node of one spec.
type edge struct{ *edgenode.Node }

// newEdge boots a node for this spec, with the agent installed if it is asked for. Edit
// changes its disk before the first boot. The spec's end takes it and its pods away.
func newEdge(ctx context.Context, name string, agent bool, edit func(root string) error, change ...func(*edgenode.Options)) *edge {
	GinkgoHelper()
	if !agent {
		change = append(change, func(o *edgenode.Options) { o.Agent = nil })
	}
	e := &edge{spec.NewNode(ctx, shared, name, change...)}
	DeferCleanup(func(ctx SpecContext) {
		if CurrentSpecReport().Failed() {
			say("%s", e.journal())
		}
		if e.Current() != nil {
			Expect(e.PowerCut(ctx)).To(Succeed())
		}
		now := int64(0)
		Expect(client.CoreV1().Pods(metav1.NamespaceDefault).DeleteCollection(ctx,
			metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})).To(Succeed())
	})
	if edit != nil {
		Expect(e.EditDisk(ctx, edit)).To(Succeed())
	}
	spec.FirstBoot(ctx, e.Node)
	if agent {
		spec.Install(ctx, e.Node)
	}
	return e
}

// appendTo adds text to a file of a node that is off.
func appendTo(path, text string) func(root string) error {
	return func(root string) error {
		file, err := os.OpenFile(filepath.Join(root, path), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = file.WriteString(text)
		return errors.Join(err, file.Close())
	}
}

// create makes pods and waits until those that serve are Ready and the others have ended.
func (e *edge) create(ctx context.Context, pods ...*corev1.Pod) {
	GinkgoHelper()
	spec.CreatePods(ctx, client, pods...)
	spec.WaitPods(ctx, client, 2*soon+time.Duration(len(pods))*time.Second, e.journal, spec.Names(pods...)...)
}

// settle has all changes on the disk.
func (e *edge) settle(ctx context.Context) {
	GinkgoHelper()
	spec.Settle(ctx, e.Node)
}

// powerCut takes the power and boots; what was not synced is lost.
func (e *edge) powerCut(ctx context.Context) *edgenode.Boot {
	GinkgoHelper()
	Expect(e.PowerCut(ctx)).To(Succeed())
	return spec.Boot(ctx, e.Node)
}

// ready counts the pods of this boot that kubelet's log has Ready.
func (e *edge) ready(names ...string) int {
	GinkgoHelper()
	count, err := spec.ReadyHere(e.Node, names...)
	Expect(err).NotTo(HaveOccurred())
	return count
}

// waitReady waits until pods are Ready in this boot, and gives when the last was, since
// kernel start.
func (e *edge) waitReady(ctx context.Context, within time.Duration, names ...string) time.Duration {
	GinkgoHelper()
	return spec.WaitReadyHere(ctx, e.Node, within, names...)
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

func (e *edge) journal() string { return spec.Journal(e.Node) }

func (e *edge) log(name string) string { return spec.Log(e.Node, name) }

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
