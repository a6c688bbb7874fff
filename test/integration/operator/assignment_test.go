package operator

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rekindle.edge/api/v1alpha1"
)

var _ = Describe("A node", func() {
	It("gets its part of the policy that selects it, complete, and owned by it", func() {
		node := newNode("part-1", map[string]string{poolKey: "stores"})
		policy := newPolicy("part", func(s *v1alpha1.EdgeRecoveryPolicySpec) {
			s.Mode = v1alpha1.ModeObserve
			s.NodePools = []v1alpha1.NodePool{{Name: "stores", Target: &v1alpha1.RecoveryTarget{RecoverySeconds: 12}}}
			s.StartupOrdering.Stages = []v1alpha1.Stage{{Name: "all", Pods: []v1alpha1.PodSelector{{LabelSelector: &metav1.LabelSelector{}}}}}
			s.CacheWarmup.Images.Extra = []string{"registry.example.com/a:v1"}
		})
		recovery := follows(node.Name, policy)
		Expect(recovery.OwnerReferences).To(ConsistOf(metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}))
		Expect(recovery.Labels).To(HaveKeyWithValue(v1alpha1.LabelPolicy, policy.Name))
		Expect(recovery.Spec).To(And(
			HaveField("Mode", v1alpha1.ModeObserve),
			HaveField("Pool", "stores"),
			HaveField("Target.RecoverySeconds", BeEquivalentTo(12)),
			HaveField("StartupOrdering", policy.Spec.StartupOrdering),
			HaveField("CacheWarmup", policy.Spec.CacheWarmup),
			HaveField("Snapshot", policy.Spec.Snapshot),
			HaveField("Offline", policy.Spec.Offline),
		))
	})

	It("follows the policy with the higher priority, and the other one again when that goes", func() {
		node := newNode("priority-1", map[string]string{"story": "priority"})
		low := newPolicy("priority-low", func(s *v1alpha1.EdgeRecoveryPolicySpec) { s.NodeSelector = byLabel("story", "priority") })
		follows(node.Name, low)
		Eventually(condition(low, v1alpha1.ConditionAccepted), soon).Should(Equal("True/Accepted"))

		high := newPolicy("priority-high", func(s *v1alpha1.EdgeRecoveryPolicySpec) {
			s.NodeSelector = byLabel("story", "priority")
			s.Priority = 1
		})
		follows(node.Name, high)
		Eventually(condition(low, v1alpha1.ConditionAccepted), soon).Should(Equal("False/Overridden"))

		newNode("priority-2", map[string]string{"story": "priority", "only": "low"})
		change(high, func() {
			high.Spec.NodeSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "only", Operator: "DoesNotExist"}}
		})
		follows("priority-2", low)
		Eventually(condition(low, v1alpha1.ConditionAccepted), soon).Should(Equal("True/PartlyOverridden"))

		Expect(c.Delete(ctx, high)).To(Succeed())
		follows(node.Name, low)
		Eventually(condition(low, v1alpha1.ConditionAccepted), soon).Should(Equal("True/Accepted"))
	})

	It("follows the older one of equals, and never goes back and forth", func() {
		node := newNode("age-1", map[string]string{"story": "age"})
		older := newPolicy("age-z", func(s *v1alpha1.EdgeRecoveryPolicySpec) { s.NodeSelector = byLabel("story", "age") })
		time.Sleep(1100 * time.Millisecond) // creation times are in whole seconds
		younger := newPolicy("age-a", func(s *v1alpha1.EdgeRecoveryPolicySpec) { s.NodeSelector = byLabel("story", "age") })
		Eventually(condition(younger, v1alpha1.ConditionAccepted), soon).Should(Equal("False/Overridden"))
		follows(node.Name, older)
	})

	It("moves with its pool label: from pool to pool, and out", func() {
		node := newNode("pool-1", map[string]string{poolKey: "pool-a"})
		policy := newPolicy("pool", func(s *v1alpha1.EdgeRecoveryPolicySpec) {
			s.Target.RecoverySeconds = 40
			s.NodePools = []v1alpha1.NodePool{{Name: "pool-a"}, {Name: "pool-b", Target: &v1alpha1.RecoveryTarget{RecoverySeconds: 7}}}
		})
		Expect(follows(node.Name, policy).Spec).To(And(HaveField("Pool", "pool-a"), HaveField("Target.RecoverySeconds", BeEquivalentTo(40))))

		change(node, func() { node.Labels[poolKey] = "pool-b" })
		Eventually(func() v1alpha1.NodeRecoverySpec { return follows(node.Name, policy).Spec }, soon).
			Should(And(HaveField("Pool", "pool-b"), HaveField("Target.RecoverySeconds", BeEquivalentTo(7))))

		change(node, func() { delete(node.Labels, poolKey) })
		gone(node.Name)
		Eventually(condition(policy, v1alpha1.ConditionAccepted), soon).Should(Equal("False/NoMatchingNodes"))
	})

	It("that is deleted and re-created under its name is a new node, whose record starts empty", func() {
		again := func(node *corev1.Node) *corev1.Node {
			Expect(c.Delete(ctx, node)).To(Succeed())
			node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: node.Labels}}
			Expect(c.Create(ctx, node)).To(Succeed())
			return node
		}
		ownedBy := func(node *corev1.Node) {
			GinkgoHelper()
			recovery := &v1alpha1.NodeRecovery{}
			Eventually(func(g Gomega) {
				g.Expect(c.Get(ctx, client.ObjectKeyFromObject(node), recovery)).To(Succeed())
				g.Expect(recovery.OwnerReferences).To(ConsistOf(HaveField("UID", node.UID)))
				g.Expect(recovery.Status.Recoveries).To(BeEmpty())
			}, soon).Should(Succeed())
		}
		node := newNode("anew-1", map[string]string{"story": "anew"})
		policy := newPolicy("anew", func(s *v1alpha1.EdgeRecoveryPolicySpec) { s.NodeSelector = byLabel("story", "anew") })
		recovery := follows(node.Name, policy)
		report(recovery, complete("boot-1", 5000, v1alpha1.ConnectivityOnline))
		node = again(node)
		ownedBy(node)

		By("also when all of that happened while the manager was down")
		recovery = follows(node.Name, policy)
		report(recovery, complete("boot-2", 5000, v1alpha1.ConnectivityOnline))
		operator.whileDown(func() { node = again(node) })
		ownedBy(node)
	})
})

var _ = Describe("A NodeRecovery", func() {
	It("goes with its policy, also when that was deleted while the manager was down", func() {
		node := newNode("orphan-1", map[string]string{"story": "orphan"})
		selectIt := func(s *v1alpha1.EdgeRecoveryPolicySpec) { s.NodeSelector = byLabel("story", "orphan") }
		policy := newPolicy("orphan", selectIt)
		follows(node.Name, policy)
		Expect(c.Delete(ctx, policy)).To(Succeed())
		gone(node.Name)

		policy = newPolicy("orphan-2", selectIt)
		follows(node.Name, policy)
		operator.whileDown(func() { Expect(c.Delete(ctx, policy)).To(Succeed()) })
		gone(node.Name)
	})

	It("goes with its node, where no garbage collector has been yet, also while the manager is down", func() {
		policy := newPolicy("nodeless", func(s *v1alpha1.EdgeRecoveryPolicySpec) { s.NodeSelector = byLabel("story", "nodeless") })
		node := newNode("nodeless-1", policy.Spec.NodeSelector.MatchLabels)
		follows(node.Name, policy)
		operator.whileDown(func() { Expect(c.Delete(ctx, node)).To(Succeed()) })
		gone(node.Name)
	})

	It("comes back when somebody deletes it, and is put right when somebody edits it", func() {
		node := newNode("edited-1", map[string]string{"story": "edited"})
		policy := newPolicy("edited", func(s *v1alpha1.EdgeRecoveryPolicySpec) { s.NodeSelector = byLabel("story", "edited") })
		want := follows(node.Name, policy)
		Expect(c.Delete(ctx, want)).To(Succeed())
		live := &v1alpha1.NodeRecovery{}
		asWanted := func(what string) {
			GinkgoHelper()
			Eventually(func(g Gomega) {
				g.Expect(c.Get(ctx, client.ObjectKey{Name: node.Name}, live)).To(Succeed())
				g.Expect(live.UID).NotTo(Equal(want.UID))
				g.Expect(live.Spec).To(Equal(want.Spec))
				g.Expect(live.Labels).To(Equal(want.Labels))
				g.Expect(live.OwnerReferences).To(Equal(want.OwnerReferences))
			}, soon).Should(Succeed(), what)
		}
		asWanted("deleted")

		change(live, func() { live.Spec.Mode = v1alpha1.ModeObserve })
		asWanted("a field changed")
		change(live, func() {
			live.Spec.StartupOrdering.Stages = []v1alpha1.Stage{{Name: "mine", Pods: []v1alpha1.PodSelector{{Namespaces: []string{"mine"}}}}}
		})
		asWanted("a field added")
		change(live, func() { live.OwnerReferences, live.Labels = nil, nil })
		asWanted("owner and label taken away")
	})
})

var _ = Describe("A policy with a selector that cannot be parsed", func() {
	It("names the field, takes nothing away and takes no node over, until it is mended", func() {
		kept := newNode("broken-1", map[string]string{"story": "broken"})
		policy := newPolicy("broken", func(s *v1alpha1.EdgeRecoveryPolicySpec) {
			s.NodeSelector = byLabel("story", "broken")
			s.Target.RecoverySeconds = 20
		})
		before := follows(kept.Name, policy)

		change(policy, func() {
			policy.Spec.Target.RecoverySeconds = 50
			policy.Spec.NodeSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "-", Operator: "Exists"}}
		})
		Eventually(condition(policy, v1alpha1.ConditionAccepted), soon).Should(Equal("False/InvalidSelector"))
		Expect(c.Get(ctx, client.ObjectKeyFromObject(policy), policy)).To(Succeed())
		Expect(policy.Status.Conditions).To(ContainElement(HaveField("Message", ContainSubstring("spec.nodeSelector.matchExpressions[0].key"))))
		newNode("broken-2", map[string]string{"story": "broken"})
		Consistently(func(g Gomega) {
			live := &v1alpha1.NodeRecovery{}
			g.Expect(c.Get(ctx, client.ObjectKey{Name: kept.Name}, live)).To(Succeed())
			g.Expect(live.ResourceVersion).To(Equal(before.ResourceVersion))
			gone("broken-2")
		}, 2*resync).Should(Succeed())

		By("moving the mistake into a stage")
		change(policy, func() {
			policy.Spec.NodeSelector.MatchExpressions = nil
			policy.Spec.StartupOrdering.Stages = []v1alpha1.Stage{{Name: "s", Pods: []v1alpha1.PodSelector{{LabelSelector: byLabel("-", "x")}}}}
		})
		Eventually(condition(policy, v1alpha1.ConditionAccepted), soon).Should(Equal("False/InvalidSelector"))
		Expect(c.Get(ctx, client.ObjectKeyFromObject(policy), policy)).To(Succeed())
		Expect(policy.Status.Conditions).To(ContainElement(HaveField("Message", ContainSubstring("spec.startupOrdering.stages[0].pods[0].labelSelector"))))
		gone("broken-2")

		change(policy, func() { policy.Spec.StartupOrdering.Stages = nil })
		Expect(follows(kept.Name, policy).Spec.Target.RecoverySeconds).To(BeEquivalentTo(50))
		follows("broken-2", policy)
	})

	It("leaves what the node had alone only while nobody edits it", func() {
		node := newNode("meddled-1", map[string]string{"story": "meddled"})
		broken := newPolicy("meddled", func(s *v1alpha1.EdgeRecoveryPolicySpec) { s.NodeSelector = byLabel("story", "meddled") })
		recovery := follows(node.Name, broken)
		change(broken, func() { broken.Spec.NodeSelector = byLabel("-", "") })
		Eventually(condition(broken, v1alpha1.ConditionAccepted), soon).Should(Equal("False/InvalidSelector"))

		By("putting its label back")
		change(recovery, func() { recovery.Labels = nil })
		Eventually(func(g Gomega) {
			g.Expect(c.Get(ctx, client.ObjectKeyFromObject(node), recovery)).To(Succeed())
			g.Expect(recovery.Labels).To(HaveKeyWithValue(v1alpha1.LabelPolicy, broken.Name))
		}, soon).Should(Succeed())

		By("taking an edited spec away: what it was is nowhere any more")
		change(recovery, func() { recovery.Spec.Mode = v1alpha1.ModeObserve })
		gone(node.Name)

		By("not believing a hand that gives the node to it")
		next := newPolicy("meddled-next", func(s *v1alpha1.EdgeRecoveryPolicySpec) { s.NodeSelector = byLabel("story", "meddled") })
		recovery = follows(node.Name, next)
		change(recovery, func() { recovery.Spec.PolicyName = broken.Name })
		follows(node.Name, next)
	})
})
