package install

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rekindle.edge/api/v1alpha1"
)

// newRecovery returns the NodeRecovery of a node as the manager would write it.
func newRecovery(node string) *v1alpha1.NodeRecovery {
	return &v1alpha1.NodeRecovery{
		ObjectMeta: metav1.ObjectMeta{Name: node},
		Spec:       v1alpha1.NodeRecoverySpec{PolicyName: "p", PolicyGeneration: 1},
	}
}

var _ = Describe("A node's identity", Ordered, func() {
	var nodeA, nodeB client.Client
	var own, other *v1alpha1.NodeRecovery

	BeforeAll(func() {
		nodeA, _ = as("system:node:a", "system:nodes")
		nodeB, _ = as("system:node:b", "system:nodes")
		for _, name := range []string{"a", "b"} {
			Expect(admin.Create(ctx, newRecovery(name))).To(Succeed())
			DeferCleanup(func() { Expect(admin.Delete(ctx, newRecovery(name))).To(Succeed()) })
		}
		// The admission policy is in force once it refuses what RBAC allows.
		Eventually(func() error {
			return statusVersion(nodeB, "a", "x", client.DryRunAll)
		}, inForce).Should(MatchError(ContainSubstring("its own NodeRecovery only")))
	})

	BeforeEach(func() {
		own, other = newRecovery("a"), newRecovery("b")
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(own), own)).To(Succeed())
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(other), other)).To(Succeed())
	})

	It("writes the status of its own NodeRecovery, by update and by patch", func() {
		own.Status.AgentVersion = "v1"
		Expect(nodeA.Status().Update(ctx, own)).To(Succeed())
		Expect(statusVersion(nodeA, "a", "v2")).To(Succeed())
		Expect(statusVersion(nodeB, "b", "v2")).To(Succeed())

		Expect(admin.Get(ctx, client.ObjectKeyFromObject(own), own)).To(Succeed())
		Expect(own.Status.AgentVersion).To(Equal("v2"))
	})

	It("is refused when it writes the status of another node", func() {
		other.Status.AgentVersion = "forged"
		refused(nodeA.Status().Update(ctx, other), "system:node:a may change the status of its own NodeRecovery only, not that of b")
		refused(statusVersion(nodeA, "b", "forged"), "system:node:a may change the status of its own NodeRecovery only, not that of b")

		Expect(admin.Get(ctx, client.ObjectKeyFromObject(other), other)).To(Succeed())
		Expect(other.Status.AgentVersion).NotTo(Equal("forged"))
	})

	It("changes nothing but the status through the status of its own", func() {
		before := own.DeepCopy()
		own.Status.AgentVersion = "v3"
		own.Spec.Mode = v1alpha1.ModeObserve
		own.Labels = map[string]string{"forged": "true"}
		own.Finalizers = []string{"forged/finalizer"}
		Expect(nodeA.Status().Update(ctx, own)).To(Succeed())

		Expect(admin.Get(ctx, client.ObjectKeyFromObject(own), own)).To(Succeed())
		Expect(own.Status.AgentVersion).To(Equal("v3"))
		Expect(own.Spec).To(Equal(before.Spec))
		Expect(own.Labels).To(Equal(before.Labels))
		Expect(own.Finalizers).To(BeEmpty())
	})

	// By RBAC alone, and again when somebody has granted nodes more than they should have.
	for _, granted := range []bool{false, true} {
		text := "by RBAC"
		if granted {
			text = "by the admission policy, whatever RBAC says"
		}
		Context(text, Ordered, func() {
			says := "cannot"
			if granted {
				says = "may change nothing of NodeRecovery"
				BeforeAll(func() { grantNodesEverything(nodeA) })
			}

			It("is refused when it changes the spec of its own", func() {
				own.Spec.Mode = v1alpha1.ModeObserve
				refused(nodeA.Update(ctx, own), says)
			})
			It("is refused when it changes the metadata of its own", func() {
				patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"forged":"true"}}}`))
				refused(nodeA.Patch(ctx, own, patch), says)
			})
			It("is refused when it deletes its own, or all", func() {
				refused(nodeA.Delete(ctx, own), says)
				refused(nodeA.DeleteAllOf(ctx, &v1alpha1.NodeRecovery{}), says)
				Expect(admin.Get(ctx, client.ObjectKeyFromObject(own), own)).To(Succeed())
			})
			It("is refused when it creates one, also of its own name", func() {
				nodeC, _ := as("system:node:c", "system:nodes")
				refused(nodeC.Create(ctx, newRecovery("c")), says)
			})
		})
	}

	It("does not hide behind a name that is not a node's, nor outside of the group", func() {
		grantEverything("User", "system:node:a")
		grantEverything("User", "stranger")
		alone, _ := as("system:node:a")
		stranger, _ := as("stranger", "system:nodes")
		Eventually(func() error { return statusVersion(alone, "b", "forged") }, inForce).
			Should(MatchError(ContainSubstring("its own NodeRecovery only")))
		refused(statusVersion(stranger, "a", "forged"), "its own NodeRecovery only")
	})

	It("leaves everybody else alone", func() {
		own.Spec.Mode = v1alpha1.ModeObserve
		Expect(admin.Update(ctx, own)).To(Succeed())
		Expect(statusVersion(admin, "a", "admin")).To(Succeed())
	})

	It("reads the keys that tokens are signed with", func() {
		_, user := as("system:node:a", "system:nodes")
		for _, path := range []string{"/openid/v1/jwks", "/.well-known/openid-configuration"} {
			Expect(get(user.Config(), path)).To(Succeed(), path)
		}
		_, nobody := as("nobody")
		refused(get(nobody.Config(), "/openid/v1/jwks"), "cannot get path")
	})
})

// statusVersion patches status.agentVersion of a NodeRecovery.
func statusVersion(c client.Client, name, version string, opts ...client.SubResourcePatchOption) error {
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"agentVersion":"`+version+`"}}`))
	return c.Status().Patch(ctx, &v1alpha1.NodeRecovery{ObjectMeta: metav1.ObjectMeta{Name: name}}, patch, opts...)
}

func refused(err error, text string) {
	GinkgoHelper()
	Expect(apierrors.IsForbidden(err)).To(BeTrue(), "want it forbidden, got: %v", err)
	Expect(err.Error()).To(ContainSubstring(text))
}
