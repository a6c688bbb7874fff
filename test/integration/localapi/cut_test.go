package localapi

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"rekindle.edge/agent/snapshot"
)

// wire is a way to the API server that can be made to swallow everything, as a dead uplink
// does: connections stay, and new ones are made and say nothing.
type wire struct {
	address  string
	dead     atomic.Bool
	listener net.Listener

	mu    sync.Mutex
	conns []net.Conn
}

// close refuses new connections.
func (w *wire) close() { _ = w.listener.Close() }

// reset breaks the connections that there are.
func (w *wire) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, conn := range w.conns {
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	}
}

func startWire(to *rest.Config) *wire {
	server, err := url.Parse(to.Host)
	Expect(err).NotTo(HaveOccurred())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { _ = listener.Close() })
	w := &wire{address: "https://" + listener.Addr().String(), listener: listener}
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", server.Host)
			if err != nil {
				_ = near.Close()
				continue
			}
			w.mu.Lock()
			w.conns = append(w.conns, near)
			w.mu.Unlock()
			go w.copy(far, near)
			go w.copy(near, far)
		}
	}()
	return w
}

func (w *wire) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if w.dead.Load() {
			_, _ = io.Copy(io.Discard, from) // what is lost stays lost
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// offlineRequests are what kubelet asks and the node can answer, one of each kind.
func offlineRequests(kubelet kubernetes.Interface, namespace string) map[string]func(context.Context) error {
	core := kubelet.CoreV1()
	status := func(phase string) []byte {
		return []byte(`{"status":{"phase":"` + phase + `","hostIP":"192.0.2.7","hostIPs":[{"ip":"192.0.2.7"}]}}`)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: nodeName, Namespace: "kube-node-lease", ResourceVersion: "1"}}
	mine := metav1.ListOptions{FieldSelector: "spec.nodeName=" + nodeName}
	one := func(name string) metav1.ListOptions {
		return metav1.ListOptions{FieldSelector: "metadata.name=" + name}
	}
	return map[string]func(context.Context) error{
		"its node": func(ctx context.Context) error {
			_, err := core.Nodes().Get(ctx, nodeName, metav1.GetOptions{})
			return err
		},
		"a pod": func(ctx context.Context) error {
			_, err := core.Pods(namespace).Get(ctx, "web", metav1.GetOptions{})
			return err
		},
		"pods":  func(ctx context.Context) error { _, err := core.Pods("").List(ctx, mine); return err },
		"nodes": func(ctx context.Context) error { _, err := core.Nodes().List(ctx, one(nodeName)); return err },
		"services": func(ctx context.Context) error {
			_, err := core.Services("").List(ctx, metav1.ListOptions{})
			return err
		},
		"one configmap": func(ctx context.Context) error {
			_, err := core.ConfigMaps(namespace).List(ctx, one("settings"))
			return err
		},
		"a configmap": func(ctx context.Context) error {
			_, err := core.ConfigMaps(namespace).Get(ctx, "settings", metav1.GetOptions{})
			return err
		},
		"drivers": func(ctx context.Context) error {
			_, err := kubelet.StorageV1().CSIDrivers().List(ctx, metav1.ListOptions{})
			return err
		},
		"a claim": func(ctx context.Context) error {
			_, err := core.PersistentVolumeClaims(namespace).Get(ctx, "data", metav1.GetOptions{})
			return err
		},
		"a pod's status": func(ctx context.Context) error {
			_, err := core.Pods(namespace).Patch(ctx, "web", types.StrategicMergePatchType, status("Running"), metav1.PatchOptions{}, "status")
			return err
		},
		"its node's status": func(ctx context.Context) error {
			_, err := core.Nodes().Patch(ctx, nodeName, types.StrategicMergePatchType, []byte(`{"status":{"phase":"Running"}}`), metav1.PatchOptions{}, "status")
			return err
		},
		"its lease": func(ctx context.Context) error {
			_, err := kubelet.CoordinationV1().Leases("kube-node-lease").Update(ctx, lease, metav1.UpdateOptions{})
			return err
		},
		"an event": func(ctx context.Context) error {
			_, err := core.Events(namespace).Create(ctx, &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: namespace}, InvolvedObject: corev1.ObjectReference{Namespace: namespace}}, metav1.CreateOptions{})
			return err
		},
		"a token": func(ctx context.Context) error {
			_, err := core.ServiceAccounts(namespace).CreateToken(ctx, "default", &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
				ExpirationSeconds: ptr.To(int64(3607)), BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: "web", UID: "u"},
			}}, metav1.CreateOptions{})
			return err
		},
		"whether a caller of its port may": func(ctx context.Context) error {
			_, err := kubelet.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "x", ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "nodes", Subresource: "proxy"},
			}}, metav1.CreateOptions{})
			return err
		},
		"a watch of its pods": func(ctx context.Context) error {
			w, err := core.Pods("").Watch(ctx, mine)
			if err == nil {
				w.Stop()
			}
			return err
		},
	}
}

var _ = Describe("Whatever way the link is lost", Ordered, Serial, func() {
	const namespace = "ways"
	BeforeAll(func(ctx context.Context) {
		opts := metav1.CreateOptions{}
		_, err := admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, opts)
		Expect(err).NotTo(HaveOccurred())
		_, err = admin.CoreV1().ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, opts)
		Expect(err).NotTo(HaveOccurred())
		_, err = admin.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}, opts)
		Expect(err).NotTo(HaveOccurred())
		create(ctx, namespace, "web")
	})

	DescribeTable("everything that kubelet asks at that moment is answered in time, by the node if it can", func(ctx context.Context, cut func(*wire)) {
		link := startWire(identity)
		way := rest.CopyConfig(identity)
		way.Host = link.address
		node := startHeld(way)
		node.copy(ctx)
		claim := schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
		Expect(node.objects.Sync(snapshot.Scope{Resource: claim, Namespace: namespace, Name: "data"}, "5", []snapshot.Object{{
			Namespace: namespace, Name: "data", UID: "u", ResourceVersion: "5",
			Raw: []byte(`{"kind":"PersistentVolumeClaim","apiVersion":"v1","metadata":{"name":"data","namespace":"` + namespace + `","uid":"u","resourceVersion":"5"}}`),
		}})).To(Succeed())
		node.handler.Access = node.access(ctx)
		node.handler.Replay = func(types.UID, string, string, []string, int64, time.Time) (authenticationv1.TokenRequestStatus, error) {
			return authenticationv1.TokenRequestStatus{Token: "kept"}, nil
		}
		config := rest.CopyConfig(node.config)
		config.ContentType = "application/vnd.kubernetes.protobuf"
		config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
		kubelet := kubernetes.NewForConfigOrDie(config)
		Eventually(func() error {
			_, err := kubelet.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
			return err
		}).WithTimeout(timeout).Should(Succeed(), "connections are open")

		cut(link)
		// All at once, so that each of them is the first that meets the cut.
		requests := offlineRequests(kubelet, namespace)
		type outcome struct {
			name string
			took time.Duration
			err  error
		}
		outcomes := make(chan outcome, len(requests))
		for name, request := range requests {
			go func() {
				begin := time.Now()
				err := request(ctx)
				outcomes <- outcome{name, time.Since(begin), err}
			}()
		}
		for range requests {
			o := <-outcomes
			Expect(o.err).NotTo(HaveOccurred(), o.name)
			Expect(o.took).To(BeNumerically("<", promptly), o.name)
		}
	},
		Entry("packets vanish", func(w *wire) { w.dead.Store(true) }),
		Entry("connections are reset, and refused from then on", func(w *wire) { w.close(); w.reset() }),
		Entry("connections stay silent, and new ones are refused", func(w *wire) { w.dead.Store(true); w.close() }),
		Entry("connections are reset, and new ones are silent", func(w *wire) { w.dead.Store(true); w.reset() }),
	)
})

var _ = Describe("At the moment of the cut", Ordered, Serial, func() {
	It("nothing that kubelet asks and the node can answer takes long", func(ctx context.Context) {
		const namespace = "cut"
		opts := metav1.CreateOptions{}
		_, err := admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, opts)
		Expect(err).NotTo(HaveOccurred())
		_, err = admin.CoreV1().ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, opts)
		Expect(err).NotTo(HaveOccurred())
		create(ctx, namespace, "web")
		link := startWire(identity)
		way := rest.CopyConfig(identity)
		way.Host = link.address
		node := startHeld(way)
		node.copy(ctx)
		kubelet := kubernetes.NewForConfigOrDie(node.config)
		get := func() time.Duration {
			begin := time.Now()
			_, err := kubelet.CoreV1().Pods(namespace).Get(ctx, "web", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			return time.Since(begin)
		}
		get() // connections are open
		link.dead.Store(true)

		Expect(get()).To(BeNumerically("<", promptly), "the first request meets a link that swallows it")
		Expect(get()).To(BeNumerically("<", promptly/10), "the next one knows")
		begin := time.Now()
		_, err = kubelet.CoreV1().Pods(namespace).Patch(ctx, "web", types.StrategicMergePatchType,
			[]byte(`{"status":{"phase":"Running","hostIP":"192.0.2.7","hostIPs":[{"ip":"192.0.2.7"}]}}`), metav1.PatchOptions{}, "status")
		Expect(err).NotTo(HaveOccurred())
		Expect(time.Since(begin)).To(BeNumerically("<", promptly/10))
		begin = time.Now()
		_, err = kubelet.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + nodeName})
		Expect(err).NotTo(HaveOccurred())
		Expect(time.Since(begin)).To(BeNumerically("<", promptly/10))

		By("the link comes back")
		link.dead.Store(false)
		Eventually(func() (string, error) {
			pod, err := admin.CoreV1().Pods(namespace).Get(ctx, "web", metav1.GetOptions{})
			return pod.Status.HostIP, err
		}).WithTimeout(time.Minute).WithPolling(pause).Should(Equal("192.0.2.7"))
	})
})
