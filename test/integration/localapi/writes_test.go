package localapi

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// promptly is the longest that a request of kubelet's may take which the node can answer.
const promptly = 1500 * time.Millisecond

var _ = Describe("Writes", Ordered, Serial, func() {
	var node *held
	var kubelet kubernetes.Interface
	const namespace = "writes"

	BeforeAll(func(ctx context.Context) {
		_, err := admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = admin.CoreV1().ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		for _, name := range []string{"plain", "changed", "ended", "deleted", "replaced"} {
			create(ctx, namespace, name)
		}
		node = startHeld(identity)
		node.copy(ctx)
		config := rest.CopyConfig(node.config)
		config.ContentType = "application/vnd.kubernetes.protobuf"
		config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
		kubelet = kubernetes.NewForConfigOrDie(config)
	})

	// patch writes an address as kubelet does, and gives how long that took.
	patch := func(ctx context.Context, name, ip string) (*corev1.Pod, time.Duration) {
		GinkgoHelper()
		begin := time.Now()
		pod, err := kubelet.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(time.Since(begin)).To(BeNumerically("<", promptly))
		before, err := json.Marshal(pod)
		Expect(err).NotTo(HaveOccurred())
		pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, ip, []corev1.PodIP{{IP: ip}}
		ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
		pod.Status.Conditions = append([]corev1.PodCondition{ready}, slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == ready.Type
		})...)
		after, err := json.Marshal(pod)
		Expect(err).NotTo(HaveOccurred())
		body, err := strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Pod{})
		Expect(err).NotTo(HaveOccurred())
		begin = time.Now()
		pod, err = kubelet.CoreV1().Pods(namespace).Patch(ctx, name, types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status")
		Expect(err).NotTo(HaveOccurred())
		return pod, time.Since(begin)
	}
	live := func(ctx context.Context, name string) func() (string, error) {
		return func() (string, error) {
			pod, err := admin.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return "", err
			}
			summary := fmt.Sprint(pod.Status.Phase, " ", pod.Status.PodIP)
			for _, c := range pod.Status.Conditions {
				summary += fmt.Sprint(" ", c.Type, "=", c.Status)
			}
			return summary, nil
		}
	}

	It("go to the API server while it answers", func(ctx context.Context) {
		patch(ctx, "plain", "10.0.0.1")
		Expect(live(ctx, "plain")()).To(Equal("Running 10.0.0.1 Ready=True"))
		Expect(node.handler.Overlay.Pending()).To(BeEmpty())
	})

	It("are kept while it does not, promptly, and seen by who watches", func(ctx context.Context) {
		upstream.StopAPIServer()
		watch, err := kubelet.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + nodeName, TimeoutSeconds: ptr.To(int64(60))})
		Expect(err).NotTo(HaveOccurred())
		defer watch.Stop()
		for i, name := range []string{"plain", "changed", "ended", "deleted", "replaced"} {
			pod, took := patch(ctx, name, fmt.Sprintf("10.0.1.%d", i))
			Expect(pod.Status.PodIP).To(Equal(fmt.Sprintf("10.0.1.%d", i)))
			Expect(took).To(BeNumerically("<", promptly), name)
		}
		Eventually(func() string {
			event := <-watch.ResultChan()
			pod := event.Object.(*corev1.Pod)
			return pod.Name + " " + pod.Status.PodIP
		}).WithTimeout(timeout).Should(Equal("replaced 10.0.1.4"))
		Expect(node.handler.Overlay.Pending()).To(HaveLen(5))

		By("what the node cannot decide is refused")
		err = kubelet.CoreV1().Pods(namespace).Delete(ctx, "plain", metav1.DeleteOptions{})
		Expect(apierrors.IsServiceUnavailable(err)).To(BeTrue(), "%v", err)
		_, err = kubelet.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}, metav1.CreateOptions{})
		Expect(apierrors.IsAlreadyExists(err)).To(BeTrue(), "%v", err)
	})

	It("are handed over when it is back, and undo nothing", func(ctx context.Context) {
		Expect(upstream.StartAPIServer(ctx)).To(Succeed())
		Eventually(live(ctx, "plain")).WithTimeout(timeout).Should(Equal("Running 10.0.1.0 Ready=True"))
		Eventually(node.handler.Overlay.Pending).WithTimeout(timeout).Should(BeEmpty())
	})

	It("lose to what the cloud has decided", func(ctx context.Context) {
		By("the node writes while it is cut off")
		upstream.StopAPIServer()
		for i, name := range []string{"changed", "ended", "deleted", "replaced"} {
			patch(ctx, name, fmt.Sprintf("10.0.2.%d", i))
		}
		By("the cloud decides before the node is heard")
		block := node.handler.Overlay.Ask
		heard := make(chan struct{})
		node.handler.Overlay.Ask = func(ctx context.Context, method, path, contentType string, body []byte) ([]byte, error) {
			select {
			case <-heard:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			return block(ctx, method, path, contentType, body)
		}
		Expect(upstream.StartAPIServer(ctx)).To(Succeed())
		set(ctx, namespace, "changed", func(status *corev1.PodStatus) {
			status.Conditions = append(status.Conditions, corev1.PodCondition{Type: "example.com/gate", Status: corev1.ConditionTrue})
		})
		set(ctx, namespace, "ended", func(status *corev1.PodStatus) { status.Phase = corev1.PodFailed })
		now := int64(0)
		for _, name := range []string{"deleted", "replaced"} {
			Expect(admin.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now})).To(Succeed())
		}
		create(ctx, namespace, "replaced")
		By("the node hears of it")
		node.copy(ctx)
		close(heard)

		Eventually(node.handler.Overlay.Pending).WithTimeout(timeout).Should(BeEmpty())
		Expect(live(ctx, "changed")()).To(Equal("Running 10.0.2.0 Ready=True example.com/gate=True"))
		Expect(live(ctx, "ended")()).To(HavePrefix("Failed"))
		Expect(live(ctx, "replaced")()).To(Equal("Pending "))
		_, err := live(ctx, "deleted")()
		Expect(apierrors.IsNotFound(err)).To(BeTrue())
	})
})

func create(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	_, err := admin.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{NodeName: nodeName, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func set(ctx context.Context, namespace, name string, change func(*corev1.PodStatus)) {
	GinkgoHelper()
	pod, err := admin.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	change(&pod.Status)
	_, err = admin.CoreV1().Pods(namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
}
