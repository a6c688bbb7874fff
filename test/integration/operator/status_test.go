package operator

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rekindle.edge/api/v1alpha1"
)

// complete returns a recovery that took so many milliseconds.
func complete(boot string, milliseconds int64, connectivity v1alpha1.Connectivity) v1alpha1.Recovery {
	return v1alpha1.Recovery{
		BootID: boot, Result: v1alpha1.RecoveryComplete, ConnectivityAtStart: connectivity,
		TotalMilliseconds: ptr.To(milliseconds), ExpectedPods: 1, ReadyPods: 1,
		Phases: v1alpha1.RecoveryPhases{Kernel: ptr.To(milliseconds / 4), LastReady: ptr.To(milliseconds - milliseconds/4)},
	}
}

// incomplete returns a recovery that did not end.
func incomplete(boot string) v1alpha1.Recovery {
	return v1alpha1.Recovery{
		BootID: boot, Result: v1alpha1.RecoveryIncomplete, ConnectivityAtStart: v1alpha1.ConnectivityOffline,
		IncompleteReason: v1alpha1.IncompletePodsNotReady, ExpectedPods: 1,
	}
}

// report is what a node's agent writes: it has taken the spec over, gives a verdict and its
// newest recoveries.
func report(recovery *v1alpha1.NodeRecovery, recoveries ...v1alpha1.Recovery) {
	GinkgoHelper()
	changeStatus(recovery, func() {
		recovery.Status.ObservedGeneration = recovery.Generation
		recovery.Status.Conditions = []metav1.Condition{{
			Type: v1alpha1.ConditionRestartReady, Status: metav1.ConditionTrue, Reason: "Test", LastTransitionTime: metav1.Now(),
		}}
		recovery.Status.Recoveries = recoveries
	})
}

// told returns the reasons of the events about an object, in order.
func told(object client.Object) func() []string {
	return func() []string {
		var events eventsv1.EventList
		Expect(c.List(ctx, &events, client.InNamespace("default"))).To(Succeed())
		var reasons []string
		for _, e := range events.Items {
			if e.Regarding.Name == object.GetName() {
				reasons = append(reasons, e.Reason)
			}
		}
		return reasons
	}
}

var _ = Describe("The status of a policy", func() {
	It("sums up what its nodes report, pool by pool, and tells of it once", func() {
		policy := newPolicy("sum", func(s *v1alpha1.EdgeRecoveryPolicySpec) {
			s.NodePools = []v1alpha1.NodePool{{Name: "sum-fast"}, {Name: "sum-slow"}, {Name: "sum-none"}}
			s.Target.RecoverySeconds = 10
		})
		Eventually(condition(policy, v1alpha1.ConditionAccepted), soon).Should(Equal("False/NoMatchingNodes"))
		fast := newNode("sum-1", map[string]string{poolKey: "sum-fast"})
		slow := newNode("sum-2", map[string]string{poolKey: "sum-slow"})
		lost := newNode("sum-3", map[string]string{poolKey: "sum-slow"})
		setReady(lost, corev1.ConditionUnknown)
		Eventually(condition(policy, v1alpha1.ConditionApplied), soon).Should(Equal("False/WaitingForAgents"))
		Eventually(condition(policy, v1alpha1.ConditionRestartReady), soon).Should(Equal("Unknown/NotEvaluated"))
		Eventually(condition(policy, v1alpha1.ConditionTargetMet), soon).Should(Equal("Unknown/NoSamples"))

		report(follows(fast.Name, policy), complete("f2", 4000, v1alpha1.ConnectivityOffline), complete("f1", 6000, v1alpha1.ConnectivityOnline))
		report(follows(slow.Name, policy), complete("s1", 9000, v1alpha1.ConnectivityOnline))
		Eventually(condition(policy, v1alpha1.ConditionTargetMet), soon).Should(Equal("True/WithinTarget"))
		By("not waiting for the node that is out of reach and has taken over nothing")
		Eventually(condition(policy, v1alpha1.ConditionApplied), soon).Should(Equal("True/AllNodesApplied"))
		Eventually(condition(policy, v1alpha1.ConditionRestartReady), soon).Should(Equal("True/AllNodesReady"))
		Eventually(func() *int64 { return live(policy).Status.P95Milliseconds }, soon).Should(HaveValue(BeEquivalentTo(9000)))
		Expect(live(policy).Status.Nodes).To(Equal(v1alpha1.NodeCounts{Matched: 3, Applied: 2, RestartReady: 2, Offline: 1}))

		report(follows(slow.Name, policy), incomplete("s2"), complete("s1", 9000, v1alpha1.ConnectivityOnline))
		Eventually(condition(policy, v1alpha1.ConditionTargetMet), soon).Should(Equal("False/TargetMissed"))
		status := live(policy).Status
		Expect(status.P95Milliseconds).To(BeNil())
		Expect(status.Pools).To(HaveLen(3))
		Expect(status.Pools[0]).To(And(HaveField("Name", "sum-fast"), HaveField("TargetMet", v1alpha1.TruthTrue),
			HaveField("Offline.P95Milliseconds", HaveValue(BeEquivalentTo(4000))), HaveField("Online.P95Milliseconds", HaveValue(BeEquivalentTo(6000)))))
		Expect(status.Pools[1]).To(And(HaveField("Name", "sum-none"), HaveField("TargetMet", v1alpha1.TruthUnknown)))
		Expect(status.Pools[2]).To(And(HaveField("Name", "sum-slow"), HaveField("TargetMet", v1alpha1.TruthFalse),
			HaveField("Nodes", BeEquivalentTo(2)), HaveField("Offline.P50Milliseconds", BeNil())))
		Expect(status.SlowestNodes).To(HaveExactElements(HaveField("Node", "sum-2"), HaveField("Node", "sum-1")))

		Eventually(told(policy), soon).Should(ConsistOf("NoMatchingNodes", "Accepted", "TargetMet", "RestartReady", "TargetMissed"))
		Eventually(told(follows(slow.Name, policy)), soon).Should(ConsistOf("RestartReady", "RecoveryIncomplete"))
		operator.whileDown(func() {})
		operator.quiet()
		Expect(told(policy)()).To(HaveLen(5), "a new manager tells nothing again")
		Expect(told(follows(slow.Name, policy))()).To(HaveLen(2))
	})

	It("shows 0 nodes of a policy that selects none, not a blank", func() {
		policy := newPolicy("zero", func(s *v1alpha1.EdgeRecoveryPolicySpec) { s.NodeSelector = byLabel("story", "zero") })
		Eventually(condition(policy, v1alpha1.ConditionAccepted), soon).Should(Equal("False/NoMatchingNodes"))
		Expect(columns(policy)).To(And(HaveKeyWithValue("Nodes", BeEquivalentTo(0)), HaveKeyWithValue("Restart-Ready", BeEquivalentTo(0))))
	})

	It("is put right when somebody edits it, by one write", func() {
		policy := newPolicy("edited-status", func(s *v1alpha1.EdgeRecoveryPolicySpec) { s.NodeSelector = byLabel("story", "edited-status") })
		Eventually(condition(policy, v1alpha1.ConditionAccepted), soon).Should(Equal("False/NoMatchingNodes"))
		operator.withoutResyncs()
		operator.quiet()
		before := len(operator.writes())
		changeStatus(policy, func() { policy.Status.Nodes.Matched = 99 })
		Eventually(func() int32 { return live(policy).Status.Nodes.Matched }, soon).Should(BeZero())
		operator.quiet()
		Expect(operator.writes()[before:]).To(HaveExactElements("PUT /apis/rekindle.edge/v1alpha1/edgerecoverypolicies/edited-status/status"))
	})

	It("is written once for many reports", func() {
		const nodes = 20
		policy := newPolicy("many", func(s *v1alpha1.EdgeRecoveryPolicySpec) { s.NodeSelector = byLabel("story", "many") })
		for i := range nodes {
			newNode(fmt.Sprintf("many-%02d", i), policy.Spec.NodeSelector.MatchLabels)
		}
		var recoveries []*v1alpha1.NodeRecovery
		for i := range nodes {
			recoveries = append(recoveries, follows(fmt.Sprintf("many-%02d", i), policy))
		}
		operator.quiet()
		before, started := len(operator.writes()), time.Now()
		for i, recovery := range recoveries {
			report(recovery, complete("b1", int64(1000+i), v1alpha1.ConnectivityOnline))
		}
		took := time.Since(started)
		Eventually(func() int32 { return live(policy).Status.Nodes.RestartReady }, soon).Should(BeEquivalentTo(nodes))
		operator.quiet()
		written := operator.writes()[before:]
		Expect(written).To(HaveEach("PUT /apis/rekindle.edge/v1alpha1/edgerecoverypolicies/many/status"))
		Expect(len(written)).To(BeNumerically("<=", 3+int(took/time.Second)))
	})
})

var _ = Describe("Unchanged input", func() {
	It("makes not one write, whatever else happens: heartbeats, resyncs, restarts of the manager", func() {
		policy := newPolicy("still", func(s *v1alpha1.EdgeRecoveryPolicySpec) {
			s.NodeSelector = byLabel("story", "still")
			s.CacheWarmup.Images.MaxSize = ptr.To(resource.MustParse("0.5Gi")) // not the canonical form
			s.StartupOrdering.Stages = []v1alpha1.Stage{{Name: "all", Pods: []v1alpha1.PodSelector{{LabelSelector: &metav1.LabelSelector{}}}}}
		})
		newPolicy("still-worse", func(s *v1alpha1.EdgeRecoveryPolicySpec) { s.NodeSelector = byLabel("story", "still") })
		newPolicy("still-nothing", func(s *v1alpha1.EdgeRecoveryPolicySpec) { s.NodeSelector = byLabel("story", "nowhere") })
		newPolicy("still-broken", func(s *v1alpha1.EdgeRecoveryPolicySpec) {
			s.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"-a": "-", "-b": "-", "-c": "-"}}
		})
		newPolicy("still-"+strings.Repeat("long", 20), func(s *v1alpha1.EdgeRecoveryPolicySpec) {
			s.NodeSelector = byLabel("story", "still-long")
		})
		nodes := []*corev1.Node{
			newNode("still-1", map[string]string{"story": "still"}),
			newNode("still-2", map[string]string{"story": "still"}),
			newNode("still-3", map[string]string{"story": "still-long"}),
		}
		report(follows("still-1", policy), complete("b1", 1000, v1alpha1.ConnectivityOffline))
		operator.quiet()

		before := len(operator.writes())
		Expect(before).NotTo(BeZero(), "the witness sees nothing")
		for range 3 {
			for _, node := range nodes {
				setReady(node, corev1.ConditionTrue) // with a new heartbeat time
				change(node, func() { node.Annotations = map[string]string{"touched": time.Now().String()} })
			}
			time.Sleep(resync)
		}
		operator.whileDown(func() {})
		time.Sleep(3 * resync)
		Expect(operator.writes()[before:]).To(BeEmpty())
	})
})
