package localapi

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// wire is a way to the API server that can be made to swallow everything, as a dead uplink
// does: connections stay, and new ones are made and say nothing.
type wire struct {
	address string
	dead    atomic.Bool
}

func startWire(to *rest.Config) *wire {
	server, err := url.Parse(to.Host)
	Expect(err).NotTo(HaveOccurred())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(listener.Close)
	w := &wire{address: "https://" + listener.Addr().String()}
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
