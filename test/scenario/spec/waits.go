package spec

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/edgenode"
	"rekindle.edge/test/scenario"
)

// ReadyHere counts the pods of namespace default that kubelet's log has Ready in this boot.
func ReadyHere(node *edgenode.Node, names ...string) (int, error) {
	witness, err := node.Current().Witness()
	if err != nil {
		return 0, err
	}
	count := 0
	for _, name := range names {
		if _, ok := witness.FirstReady("default/" + name); ok {
			count++
		}
	}
	return count, nil
}

// WaitReadyHere waits until kubelet's log has the pods of namespace default Ready in this
// boot, and gives when the last was, since kernel start.
func WaitReadyHere(ctx context.Context, node *edgenode.Node, within time.Duration, names ...string) time.Duration {
	GinkgoHelper()
	Eventually(ctx, func() (int, error) { return ReadyHere(node, names...) }).
		WithTimeout(within).WithPolling(Poll).Should(Equal(len(names)), func() string { return Journal(node) })
	witness, err := node.Current().Witness()
	Expect(err).NotTo(HaveOccurred())
	var last time.Duration
	for _, name := range names {
		first, _ := witness.FirstReady("default/" + name)
		last = max(last, node.Current().Since(first).Round(time.Millisecond))
	}
	return last
}

// CreatePods makes pods of namespace default.
func CreatePods(ctx context.Context, client kubernetes.Interface, pods ...*corev1.Pod) {
	GinkgoHelper()
	for _, pod := range pods {
		_, err := client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
}

// WaitPods waits until the API server has the pods of namespace default Ready, or ended well.
// What explains is shown if it never has.
func WaitPods(ctx context.Context, client kubernetes.Interface, within time.Duration, explain func() string, names ...string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		for _, name := range names {
			pod, err := client.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(scenario.Ready(pod) || pod.Status.Phase == corev1.PodSucceeded).To(BeTrue(), "%s: %+v", name, pod.Status)
		}
	}).WithTimeout(within).WithPolling(Poll).Should(Succeed(), explain)
}

// Names of pods.
func Names(pods ...*corev1.Pod) []string {
	names := make([]string, len(pods))
	for i, pod := range pods {
		names[i] = pod.Name
	}
	return names
}

// Policy gives a node its part of a policy, as the controller would, and waits until the
// agent has taken it over.
func Policy(ctx context.Context, client ctrl.Client, node *edgenode.Node, spec v1alpha1.NodeRecoverySpec) {
	GinkgoHelper()
	SetPolicy(ctx, client, node.Name, spec)
	Eventually(ctx, func(g Gomega) {
		recovery := NodeRecovery(ctx, client, node.Name)
		g.Expect(recovery.Status.ObservedGeneration).To(Equal(recovery.Generation))
	}).WithTimeout(Soon).WithPolling(Poll).Should(Succeed(), func() string { return Journal(node) })
}

// SetPolicy is Policy without waiting, for a node that may be off.
func SetPolicy(ctx context.Context, client ctrl.Client, node string, spec v1alpha1.NodeRecoverySpec) {
	GinkgoHelper()
	spec.PolicyName, spec.PolicyGeneration = "edge", 1
	recovery := &v1alpha1.NodeRecovery{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: spec}
	Eventually(ctx, func() error {
		if err := client.Create(ctx, recovery.DeepCopy()); ctrl.IgnoreAlreadyExists(err) != nil || err == nil {
			return err
		}
		now := NodeRecovery(ctx, client, node)
		now.Spec = spec
		return client.Update(ctx, now) // the agent may have written meanwhile
	}).WithTimeout(Soon).WithPolling(Poll).Should(Succeed())
}

// NodeRecovery is a node's.
func NodeRecovery(ctx context.Context, client ctrl.Client, node string) *v1alpha1.NodeRecovery {
	GinkgoHelper()
	var recovery v1alpha1.NodeRecovery
	Expect(client.Get(ctx, ctrl.ObjectKey{Name: node}, &recovery)).To(Succeed())
	return &recovery
}
