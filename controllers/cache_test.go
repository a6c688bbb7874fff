package controllers

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

func TestStripNodeKeepsWhatIsLookedAt(t *testing.T) {
	node := makeNode("n", "a", "b")
	node.ResourceVersion = "7"
	node.CreationTimestamp = epoch
	want := node.DeepCopy()

	node.Annotations = map[string]string{"big": strings.Repeat("x", 10_000)}
	node.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	node.Spec.PodCIDR = "10.0.0.0/24"
	node.Status.Conditions = append([]corev1.NodeCondition{{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse}}, node.Status.Conditions...)
	node.Status.Conditions[1].LastHeartbeatTime = epoch
	node.Status.Images = []corev1.ContainerImage{{Names: []string{strings.Repeat("i", 10_000)}}}

	got, err := stripNode(node)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if data, _ := json.Marshal(got); len(data) > 1000 {
		t.Errorf("a stripped node has %d bytes", len(data))
	}
	again, _ := stripNode(got)
	if diff := cmp.Diff(got, again); diff != "" {
		t.Errorf("stripping twice: %s", diff)
	}
}

func TestStripRecoveryKeepsWhoseSpecItIs(t *testing.T) {
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: operation, APIVersion: "rekindle.edge/v1alpha1", Time: &epoch,
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	const apply, update = metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	agent := entry("rekindle-agent", update, `{"f:status":{}}`)
	cases := map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    bool
	}{
		"applied by the controllers":                   {[]metav1.ManagedFieldsEntry{entry(fieldOwner, apply, `{"f:metadata":{"f:labels":{}},"f:spec":{}}`), agent}, true},
		"applied by somebody else with the same value": {[]metav1.ManagedFieldsEntry{entry(fieldOwner, apply, `{"f:spec":{}}`), entry("x", apply, `{"f:spec":{}}`)}, true},
		"edited by hand since":                         {[]metav1.ManagedFieldsEntry{entry(fieldOwner, apply, `{"f:metadata":{}}`), entry("kubectl-edit", update, `{"f:spec":{}}`)}, false},
		"created by somebody else":                     {[]metav1.ManagedFieldsEntry{entry("kubectl-create", update, `{"f:spec":{}}`)}, false},
		"without a trace":                              {nil, false},
		"with a trace that cannot be read":             {[]metav1.ManagedFieldsEntry{entry(fieldOwner, apply, `?`), {Manager: fieldOwner, Operation: apply}}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			recovery := makeRecovery(makePolicy("p").obj(), makeNode("n"))
			recovery.ManagedFields = tc.entries
			for range 2 { // the cache may strip an object twice
				if _, err := stripRecovery(recovery); err != nil {
					t.Fatal(err)
				}
				if got := holderOf(recovery) == "p"; got != tc.want {
					t.Errorf("the spec is ours = %v, want %v", got, tc.want)
				}
				if data, _ := json.Marshal(recovery.ManagedFields); len(data) > 200 {
					t.Errorf("stripped managedFields have %d bytes", len(data))
				}
			}
		})
	}
}

func TestTombstonesAreLeftAlone(t *testing.T) {
	if got, err := stripRecovery(cache.DeletedFinalStateUnknown{Key: "n"}); err != nil || got != any(cache.DeletedFinalStateUnknown{Key: "n"}) {
		t.Errorf("got %v, %v", got, err)
	}
	tombstone := cache.DeletedFinalStateUnknown{Key: "n", Obj: makeNode("n")}
	if got, err := stripNode(tombstone); err != nil || got != any(tombstone) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestOutOfReach(t *testing.T) {
	cases := map[string]struct {
		node *corev1.Node
		want bool
	}{
		"a node that is Ready is in reach":                       {withReady(makeNode("n"), corev1.ConditionTrue), false},
		"a node that says it is not Ready is in reach":           {withReady(makeNode("n"), corev1.ConditionFalse), false},
		"a node that is not heard of is out of reach":            {withReady(makeNode("n"), corev1.ConditionUnknown), true},
		"a node that has just registered is not said to be lost": {&corev1.Node{}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := outOfReach(tc.node); got != tc.want {
				t.Errorf("out of reach = %v, want %v", got, tc.want)
			}
		})
	}
}
