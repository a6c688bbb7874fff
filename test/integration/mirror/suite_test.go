// Package mirror runs the mirror against real API servers with the Node authorizer and
// NodeRestriction, as a node with no more rights than config/rbac gives.
package mirror

import (
	"context"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2/textlogger"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"rekindle.edge/agent/mirror"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/internal/cloud"
)

const (
	root = "../../.."
	// soon bounds what the mirror does at once, on a machine that is busy.
	soon = 30 * time.Second
	// quiet is how long nothing must happen: longer than a second look at the pods takes.
	quiet = 12 * time.Second
	poll  = 50 * time.Millisecond

	nodeName  = "edge-1"
	namespace = metav1.NamespaceDefault
)

var (
	ctx    = context.Background()
	scheme = runtime.NewScheme()
)

func TestMirror(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Mirror")
}

var _ = BeforeSuite(func() {
	ctrllog.SetLogger(logr.Discard())
	SetDefaultEventuallyTimeout(soon)
	SetDefaultEventuallyPollingInterval(poll)
	SetDefaultConsistentlyDuration(quiet)
	SetDefaultConsistentlyPollingInterval(poll)
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
})

// edge is a node with a mirror on it, and the way to its API server.
type edge struct {
	*authority
	server *server
	admin  client.Client
	link   *cloud.Link
	config *rest.Config

	dir    string
	store  *snapshot.Store
	mirror *mirror.Mirror
	// stop ends all, disconnect the session alone.
	stop, disconnect func()
	log              *cloud.Log
	// spec that the next start adopts.
	spec *snapshot.Spec
}

func newEdge() *edge {
	GinkgoHelper()
	e := &edge{authority: newAuthority(), dir: GinkgoT().TempDir(), log: &cloud.Log{}, stop: func() {}}
	e.server = newServer(e.authority)
	e.admin = e.adminOf(e.server)
	setUp(e.admin)
	e.link = cloud.NewLink(e.server.address())
	e.config = e.user(e.link.Address, "system:node:"+nodeName, "system:nodes")
	DeferCleanup(func() { e.stop(); GinkgoWriter.Printf("--- mirror\n%s", e.log) })
	return e
}

func (a *authority) adminOf(s *server) client.Client {
	GinkgoHelper()
	admin, err := client.New(a.user(s.address(), "admin", "system:masters"), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return admin
}

// setUp makes what a cluster has before the node's pods are there.
func setUp(admin client.Client) {
	GinkgoHelper()
	cloud.Create(ctx, admin, "config/rbac/node.yaml")
	Expect(admin.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}})).To(Succeed())
	Eventually(func() error {
		return client.IgnoreAlreadyExists(admin.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}}))
	}).Should(Succeed())
	Expect(admin.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kube-root-ca.crt"}, Data: map[string]string{"ca.crt": "x"}})).To(Succeed())
	Eventually(func() error {
		return admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "kubernetes"}, &corev1.Service{})
	}).Should(Succeed())
}

// start opens the store and mirrors until stop.
func (e *edge) start() {
	GinkgoHelper()
	log := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(e.log), textlogger.Verbosity(4)))
	store, err := snapshot.Open(e.dir, log)
	Expect(err).NotTo(HaveOccurred())
	e.store = store
	e.mirror = mirror.New(store.Objects(), time.Now, func() {})
	e.mirror.Adopt(e.spec)
	e.connect(e.config)
	e.stop = sync.OnceFunc(func() {
		e.disconnect()
		Expect(store.Close()).To(Succeed())
	})
}

// connect runs a session until disconnect, as a kubeconfig that changes ends one and begins
// the next.
func (e *edge) connect(config *rest.Config) {
	log := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(e.log), textlogger.Verbosity(4)))
	running, cancel := context.WithCancel(logr.NewContext(ctx, log))
	done := make(chan struct{})
	go func() {
		defer GinkgoRecover()
		defer close(done)
		Expect(e.mirror.Run(running, nodeName, config)).To(Succeed())
	}()
	e.disconnect = func() {
		cancel()
		<-done
	}
}

func (e *edge) adopt(spec v1alpha1.NodeRecoverySpec) {
	e.spec = &snapshot.Spec{Generation: 1, Spec: spec}
	e.mirror.Adopt(e.spec)
}

func resource(group, version, name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: name}
}

func core(name string) schema.GroupVersionResource { return resource("", "v1", name) }

// has says whether the snapshot has an object.
func (e *edge) has(r schema.GroupVersionResource, namespace, name string) func() bool {
	return func() bool {
		_, ok := e.store.Objects().Get(r, namespace, name)
		return ok
	}
}

// knownAbsent says whether the snapshot knows that there is no such object.
func (e *edge) knownAbsent(r schema.GroupVersionResource, namespace, name string) func() bool {
	return func() bool {
		return !e.has(r, namespace, name)() && e.store.Objects().Known(snapshot.Scope{Resource: r, Namespace: namespace, Name: name})
	}
}

// podNames are the pods in the snapshot.
func (e *edge) podNames() []string {
	all, _ := e.store.Objects().List(core("pods"))
	names := []string{}
	for _, pod := range all {
		names = append(names, pod.Name)
	}
	return names
}

func (e *edge) fresh() string { return e.mirror.Report().Fresh.Reason }

// newPod is a pod of the node.
func newPod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PodSpec{NodeName: nodeName, Containers: []corev1.Container{{Name: "c", Image: "web"}}},
	}
	for _, c := range change {
		c(pod)
	}
	return pod
}
