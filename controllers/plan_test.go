package controllers

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"rekindle.edge/api/v1alpha1"
)

func TestPlanNode(t *testing.T) {
	policy := makePolicy("p")
	node := makeNode("n", poolKey, "stores")
	live := func(change func(*v1alpha1.NodeRecovery)) *v1alpha1.NodeRecovery {
		recovery := makeRecovery(policy.obj(), node)
		change(recovery)
		return recovery
	}
	asIs := func(*v1alpha1.NodeRecovery) {}
	long := makePolicy(strings.Repeat("n", 64))

	cases := map[string]struct {
		policies []*policyBuilder
		node     *corev1.Node
		live     *v1alpha1.NodeRecovery
		want     string // what is done
	}{
		"a node that follows a policy gets its NodeRecovery":      {[]*policyBuilder{policy}, node, nil, "create"},
		"nothing is done twice":                                   {[]*policyBuilder{policy}, node, live(asIs), ""},
		"neither node nor NodeRecovery: nothing":                  {[]*policyBuilder{policy}, nil, nil, ""},
		"a node that no policy selects gets none":                 {nil, node, nil, ""},
		"the NodeRecovery of a node that follows no policy goes":  {nil, node, live(asIs), "delete"},
		"the NodeRecovery of a node that is gone goes":            {[]*policyBuilder{policy}, nil, live(asIs), "delete"},
		"one that is being deleted is left alone until it is":     {nil, node, live(func(r *v1alpha1.NodeRecovery) { r.DeletionTimestamp = ptr.To(epoch) }), ""},
		"one of the node before of that name goes":                {[]*policyBuilder{policy}, node, live(func(r *v1alpha1.NodeRecovery) { r.OwnerReferences[0].UID = "before" }), "delete"},
		"a change of mode is put right":                           {[]*policyBuilder{policy}, node, live(func(r *v1alpha1.NodeRecovery) { r.Spec.Mode = "Observe" }), "update"},
		"an older generation of the policy is replaced":           {[]*policyBuilder{policy}, node, live(func(r *v1alpha1.NodeRecovery) { r.Spec.PolicyGeneration-- }), "update"},
		"the pool that the node has left is replaced":             {[]*policyBuilder{policy}, node, live(func(r *v1alpha1.NodeRecovery) { r.Spec.Pool = "before" }), "update"},
		"the owner that somebody took away comes back":            {[]*policyBuilder{policy}, node, live(func(r *v1alpha1.NodeRecovery) { r.OwnerReferences = nil }), "update"},
		"the label that somebody took away comes back":            {[]*policyBuilder{policy}, node, live(func(r *v1alpha1.NodeRecovery) { r.Labels = nil }), "update"},
		"labels, annotations and owners of others are left alone": {[]*policyBuilder{policy}, node, live(withForeignMetadata), ""},
		"a status is the agent's":                                 {[]*policyBuilder{policy}, node, live(func(r *v1alpha1.NodeRecovery) { r.Status.AgentVersion = "v2" }), ""},
		"a name too long for a label is left out, and not sought": {[]*policyBuilder{long}, node, makeRecovery(long.obj(), node), ""},
		"a policy that cannot be parsed leaves the spec alone":    {[]*policyBuilder{makePolicy("p").badStage()}, node, live(func(r *v1alpha1.NodeRecovery) { r.Spec.PolicyGeneration-- }), ""},
		"while a policy cannot be parsed, its label comes back":   {[]*policyBuilder{makePolicy("p").badStage()}, node, live(func(r *v1alpha1.NodeRecovery) { r.Labels = nil }), "update"},
		"a spec edited while its policy cannot be parsed goes":    {[]*policyBuilder{makePolicy("p").badStage()}, node, live(byHand), "delete"},
		"nobody hands a node to a policy that cannot be parsed":   {[]*policyBuilder{makePolicy("p").badNodeSelector(), makePolicy("q")}, node, live(byHand), "update"},
		"a spec that somebody else wrote is taken over":           {[]*policyBuilder{policy}, node, live(byHand), "update"},
		"a policy that cannot be parsed renders none":             {[]*policyBuilder{makePolicy("p").badStage()}, node, nil, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := planNode(ranked(tc.policies...), tc.node, tc.live)
			got := ""
			switch {
			case p.apply != nil && p.apply.UID == "":
				got = "create"
			case p.apply != nil:
				got = "update"
			case p.remove != nil:
				got = "delete"
			}
			if got != tc.want {
				t.Fatalf("plan is to %q, want %q", got, tc.want)
			}
			if p.apply != nil && tc.live != nil && p.apply.UID != tc.live.UID {
				t.Errorf("updates the object of UID %s, want %s", p.apply.UID, tc.live.UID)
			}
		})
	}
}

// byHand is what the cache holds after somebody else wrote the spec.
func byHand(r *v1alpha1.NodeRecovery) { r.ManagedFields = nil }

func withForeignMetadata(r *v1alpha1.NodeRecovery) {
	r.Labels["theirs"] = "x"
	r.Annotations = map[string]string{"theirs": "x"}
	r.OwnerReferences = append(r.OwnerReferences, metav1.OwnerReference{APIVersion: "theirs/v1", Kind: "Node", Name: "x", UID: "x"})
}

func TestRenderIsCompleteAndSharesNothing(t *testing.T) {
	policy := makePolicy("p").pools(v1alpha1.NodePool{Name: "stores", Target: &v1alpha1.RecoveryTarget{RecoverySeconds: 12}})
	policy.Generation = 7
	policy.Spec.Mode = v1alpha1.ModeObserve
	policy.Spec.CacheWarmup.Images.Extra = []string{"image"}
	policy.Spec.CacheWarmup.Images.MaxSize = ptr.To(resource.MustParse("1Gi"))
	policy.Spec.StartupOrdering.Stages = []v1alpha1.Stage{{Name: "s"}}
	policy.Spec.Snapshot.NodeFiles = []string{"/run/a"}
	policy.Spec.Offline.FreshnessWaitMilliseconds = ptr.To[int32](5)

	got := render(policy.obj(), makeNode("n", poolKey, "stores"))
	want := v1alpha1.NodeRecoverySpec{
		PolicyName: "p", PolicyGeneration: 7, Pool: "stores", Mode: v1alpha1.ModeObserve,
		Target:          v1alpha1.RecoveryTarget{RecoverySeconds: 12},
		CacheWarmup:     policy.Spec.CacheWarmup,
		StartupOrdering: policy.Spec.StartupOrdering,
		Snapshot:        policy.Spec.Snapshot,
		Offline:         policy.Spec.Offline,
	}
	if diff := cmp.Diff(want, got.Spec); diff != "" {
		t.Error(diff)
	}
	wantOwner := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "uid-n"}}
	if diff := cmp.Diff(wantOwner, got.OwnerReferences); diff != "" {
		t.Error(diff)
	}

	got.Spec.CacheWarmup.Images.Extra[0] = "other"
	got.Spec.StartupOrdering.Stages[0].Name = "other"
	*got.Spec.Offline.FreshnessWaitMilliseconds = 6
	if policy.Spec.CacheWarmup.Images.Extra[0] != "image" || policy.Spec.StartupOrdering.Stages[0].Name != "s" ||
		*policy.Spec.Offline.FreshnessWaitMilliseconds != 5 {
		t.Error("a change of what was rendered changed the policy in the cache")
	}
}

func TestTargetOf(t *testing.T) {
	policy := makePolicy("p").pools(v1alpha1.NodePool{Name: "own", Target: &v1alpha1.RecoveryTarget{RecoverySeconds: 5}}, v1alpha1.NodePool{Name: "none"}).obj()
	for pool, want := range map[string]int32{"own": 5, "none": 30, "": 30, "unknown": 30} {
		if got := targetOf(policy, pool).RecoverySeconds; got != want {
			t.Errorf("target of pool %q = %d s, want %d", pool, got, want)
		}
	}
}

func TestApplyConfigurationLeavesTheStatusToTheAgent(t *testing.T) {
	recovery := makeRecovery(makePolicy("p").obj(), makeNode("n"))
	config, err := applyConfiguration(recovery)
	if err != nil {
		t.Fatal(err)
	}
	content := config.(interface{ UnstructuredContent() map[string]any }).UnstructuredContent()
	if _, has := content["status"]; has {
		t.Error("the status is applied")
	}
	metadata := content["metadata"].(map[string]any)
	if _, has := metadata["creationTimestamp"]; has {
		t.Error("the creation time is applied")
	}
	if metadata["uid"] != "nrec-n" {
		t.Errorf("uid = %v, want that of the object as a precondition", metadata["uid"])
	}
}
