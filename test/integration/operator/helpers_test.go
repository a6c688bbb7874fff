package operator

import (
	"encoding/json"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rekindle.edge/api/v1alpha1"
)

// soon is more than any step takes, on a busy machine.
const soon = 15 * time.Second

const poolKey = v1alpha1.DefaultNodePoolLabelKey

// newNode creates a Node that is Ready, for the length of a spec.
func newNode(name string, labels map[string]string) *corev1.Node {
	GinkgoHelper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	Expect(c.Create(ctx, node)).To(Succeed())
	DeferCleanup(func() {
		Expect(client.IgnoreNotFound(c.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}))).To(Succeed())
		gone(name)
	})
	setReady(node, corev1.ConditionTrue)
	return node
}

// setReady is what kubelet and the node lifecycle controller do.
func setReady(node *corev1.Node, ready corev1.ConditionStatus) {
	GinkgoHelper()
	changeStatus(node, func() {
		node.Status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: ready, Reason: "Test", LastHeartbeatTime: metav1.Now(),
		}}
	})
}

// newPolicy creates a policy, for the length of a spec.
func newPolicy(name string, fill func(*v1alpha1.EdgeRecoveryPolicySpec)) *v1alpha1.EdgeRecoveryPolicy {
	GinkgoHelper()
	policy := &v1alpha1.EdgeRecoveryPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	fill(&policy.Spec)
	Expect(c.Create(ctx, policy)).To(Succeed())
	DeferCleanup(func() { Expect(client.IgnoreNotFound(c.Delete(ctx, policy))).To(Succeed()) })
	return policy
}

// byLabel selects nodes with one label.
func byLabel(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

// change reads the object, changes it and writes it, again if somebody else was faster.
func change(object client.Object, mutate func()) {
	GinkgoHelper()
	changeBy(object, mutate, func() error { return c.Update(ctx, object) })
}

// changeStatus does the same with its status.
func changeStatus(object client.Object, mutate func()) {
	GinkgoHelper()
	changeBy(object, mutate, func() error { return c.Status().Update(ctx, object) })
}

func changeBy(object client.Object, mutate func(), write func() error) {
	GinkgoHelper()
	Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		mutate()
		return write()
	})).To(Succeed())
}

// follows waits until the node's NodeRecovery is rendered from that generation of the
// policy, and returns it.
func follows(node string, policy *v1alpha1.EdgeRecoveryPolicy) *v1alpha1.NodeRecovery {
	GinkgoHelper()
	recovery := &v1alpha1.NodeRecovery{}
	Eventually(func(g Gomega) {
		g.Expect(c.Get(ctx, client.ObjectKey{Name: node}, recovery)).To(Succeed())
		g.Expect(recovery.Spec.PolicyName).To(Equal(policy.Name))
		g.Expect(recovery.Spec.PolicyGeneration).To(Equal(policy.Generation))
	}, soon).Should(Succeed())
	return recovery
}

// gone waits until the node has no NodeRecovery.
func gone(node string) {
	GinkgoHelper()
	Eventually(func() bool {
		return apierrors.IsNotFound(c.Get(ctx, client.ObjectKey{Name: node}, &v1alpha1.NodeRecovery{}))
	}, soon).Should(BeTrue(), "NodeRecovery %s is still there", node)
}

// condition returns "Status/Reason" of a policy's condition that is about its present
// generation, or what is missing.
func condition(policy *v1alpha1.EdgeRecoveryPolicy, kind string) func() string {
	return func() string {
		live := &v1alpha1.EdgeRecoveryPolicy{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(policy), live); err != nil {
			return err.Error()
		}
		found := meta.FindStatusCondition(live.Status.Conditions, kind)
		if found == nil || found.ObservedGeneration != live.Generation {
			return "not about this generation"
		}
		return string(found.Status) + "/" + found.Reason
	}
}

// live returns the policy as it is now.
func live(policy *v1alpha1.EdgeRecoveryPolicy) *v1alpha1.EdgeRecoveryPolicy {
	GinkgoHelper()
	now := &v1alpha1.EdgeRecoveryPolicy{}
	Expect(c.Get(ctx, client.ObjectKeyFromObject(policy), now)).To(Succeed())
	return now
}

// columns returns the cells that kubectl get prints of a policy, by the name of the column.
func columns(policy *v1alpha1.EdgeRecoveryPolicy) map[string]any {
	GinkgoHelper()
	web, err := rest.HTTPClientFor(restConfig)
	Expect(err).NotTo(HaveOccurred())
	// An address without a scheme is one of TLS.
	host, _, err := rest.DefaultServerUrlFor(restConfig)
	Expect(err).NotTo(HaveOccurred())
	host.Path = "/apis/" + v1alpha1.GroupVersion.String() + "/edgerecoverypolicies/" + policy.Name
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, host.String(), nil)
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	response, err := web.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	var table metav1.Table
	Expect(json.NewDecoder(response.Body).Decode(&table)).To(Succeed())
	Expect(table.Rows).To(HaveLen(1))
	cells := map[string]any{}
	for i, column := range table.ColumnDefinitions {
		cells[column.Name] = table.Rows[0].Cells[i]
	}
	return cells
}
