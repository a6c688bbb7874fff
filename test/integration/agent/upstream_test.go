package agent

import (
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/internal/cloud"
)

// wipe empties the node's status; an agent that is connected sets it right.
func (n *node) wipe() {
	GinkgoHelper()
	recovery, err := n.recovery()
	Expect(err).NotTo(HaveOccurred())
	recovery.Status = v1alpha1.NodeRecoveryStatus{}
	Expect(admin.Status().Update(ctx, recovery)).To(Succeed())
}

var _ = Describe("Kubelet's kubeconfig", func() {
	It("is taken up when it comes late, and again when it changes", func() {
		n := newNode()
		n.stopAgent()
		good, err := os.ReadFile(n.path("kubeconfig"))
		Expect(err).NotTo(HaveOccurred())
		Expect(os.Remove(n.path("kubeconfig"))).To(Succeed())
		n.wipe()
		n.startAgent()
		Consistently(n.recovery).Should(HaveField("Status.AgentVersion", BeEmpty()))

		By("one that is broken at first")
		Expect(os.WriteFile(n.path("kubeconfig"), good[:len(good)/2], 0o600)).To(Succeed())
		Consistently(n.recovery).Should(HaveField("Status.AgentVersion", BeEmpty()))
		Expect(os.WriteFile(n.path("kubeconfig"), good, 0o600)).To(Succeed())
		Eventually(n.recovery).Should(HaveField("Status.AgentVersion", "v0-test"))

		By("another server, while the old one does not answer any more")
		other := cloud.NewLink(apiServer())
		changed := strings.ReplaceAll(string(good), n.link.Address, other.Address)
		n.link.Down()
		n.wipe()
		Expect(os.WriteFile(n.path("kubeconfig"), []byte(changed), 0o600)).To(Succeed())
		Eventually(n.recovery).Should(HaveField("Status.AgentVersion", "v0-test"))
	})
})

var _ = Describe("A CRD that is older than the agent", Serial, func() {
	// keepVersion sets whether the schema knows status.agentVersion.
	var field any
	path := []string{"schema", "openAPIV3Schema", "properties", "status", "properties"}
	keepVersion := func(keep bool) {
		GinkgoHelper()
		crd := &unstructured.Unstructured{}
		crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		Expect(admin.Get(ctx, client.ObjectKey{Name: "noderecoveries.rekindle.edge"}, crd)).To(Succeed())
		versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
		Expect(err).NotTo(HaveOccurred())
		properties, _, err := unstructured.NestedMap(versions[0].(map[string]any), path...)
		Expect(err).NotTo(HaveOccurred())
		if keep {
			properties["agentVersion"] = field
		} else {
			field = properties["agentVersion"]
			delete(properties, "agentVersion")
		}
		Expect(unstructured.SetNestedMap(versions[0].(map[string]any), properties, path...)).To(Succeed())
		Expect(unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions")).To(Succeed())
		Expect(admin.Update(ctx, crd)).To(Succeed())

		// The server takes the schema up a moment later.
		probe := &v1alpha1.NodeRecovery{ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Spec: v1alpha1.NodeRecoverySpec{PolicyName: "edge", PolicyGeneration: 1}}
		Expect(admin.Create(ctx, probe)).To(Succeed())
		want := ""
		if keep {
			want = "kept"
		}
		Eventually(func(g Gomega) {
			probe.Status.AgentVersion = "kept"
			g.Expect(admin.Status().Update(ctx, probe)).To(Succeed())
			g.Expect(probe.Status.AgentVersion).To(Equal(want))
		}).Should(Succeed())
		Expect(admin.Delete(ctx, probe)).To(Succeed())
	}

	It("is not written to again and again", func() {
		keepVersion(false)
		DeferCleanup(keepVersion, true)
		n := newNode()
		Eventually(n.recovery).Should(HaveField("Status.ObservedGeneration", BeEquivalentTo(1)))
		// The mirror settles a moment later, which is worth a write of its own.
		Eventually(n.recovery).Should(HaveField("Status.Conditions", ContainElement(And(
			HaveField("Type", v1alpha1.ConditionSnapshotFresh), HaveField("Status", metav1.ConditionTrue)))))
		written, err := n.recovery()
		Expect(err).NotTo(HaveOccurred())
		Expect(written.Status.AgentVersion).To(BeEmpty())
		attempts := n.writes()
		Consistently(n.writes).Should(Equal(attempts))
		Expect(n.recovery()).To(HaveField("ResourceVersion", written.ResourceVersion))
	})
})
