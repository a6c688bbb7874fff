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

func TestStripNodeLeavesTombstonesAlone(t *testing.T) {
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
