package controllers

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"rekindle.edge/api/v1alpha1"
)

func TestWhichUpdatesAreLookedAt(t *testing.T) {
	node := func(change func(*corev1.Node)) client.Object {
		n := makeNode("n", "a", "b")
		n.ResourceVersion = "2"
		change(n)
		return n
	}
	recovery := func(change func(*v1alpha1.NodeRecovery)) client.Object {
		r := makeRecovery(makePolicy("p").obj(), makeNode("n"))
		r.ResourceVersion = "2"
		change(r)
		return r
	}
	counting := func(matched int32) client.Object {
		p := makePolicy("p")
		p.ResourceVersion = "2"
		p.Status.Nodes.Matched = matched
		return p.obj()
	}
	before := func(object client.Object) client.Object {
		object.SetResourceVersion("1")
		return object
	}
	oldNode := before(node(func(*corev1.Node) {}))
	oldRecovery := before(recovery(func(*v1alpha1.NodeRecovery) {}))
	lost := func(n *corev1.Node) { withReady(n, corev1.ConditionUnknown) }

	cases := map[string]struct {
		changed       func(before, after client.Object) bool
		before, after client.Object
		want          bool
	}{
		"a heartbeat is not":                       {nodeMoved, oldNode, node(func(*corev1.Node) {}), false},
		"a label is":                               {nodeMoved, oldNode, node(func(n *corev1.Node) { n.Labels["a"] = "c" }), true},
		"a new node under the old name is":         {nodeMoved, oldNode, node(func(n *corev1.Node) { n.UID = "new" }), true},
		"a node that is lost is not, for its spec": {nodeMoved, oldNode, node(lost), false},
		"a node that is lost is, for the status":   {nodeMovedOrLost, oldNode, node(lost), true},
		"a resync is":                              {nodeMoved, oldNode, oldNode, true},
		"what the agent reports is not":            {recoveryEdited, oldRecovery, recovery(func(r *v1alpha1.NodeRecovery) { r.Status.AgentVersion = "v2" }), false},
		"an edit of a NodeRecovery's spec is":      {recoveryEdited, oldRecovery, recovery(func(r *v1alpha1.NodeRecovery) { r.Generation++ }), true},
		"a NodeRecovery that loses its owner is":   {recoveryEdited, oldRecovery, recovery(func(r *v1alpha1.NodeRecovery) { r.OwnerReferences = nil }), true},
		"a NodeRecovery that loses its label is":   {recoveryEdited, oldRecovery, recovery(func(r *v1alpha1.NodeRecovery) { r.Labels = nil }), true},
		"a policy's deletion that only starts is":  {generationMoved, before(makePolicy("p").obj()), makePolicy("p").deleted().obj(), true},
		"a policy's status is not, for its nodes":  {generationMoved, before(makePolicy("p").obj()), counting(99), false},
		"a policy's status is, for itself":         {policyStatusMoved, before(makePolicy("p").obj()), counting(99), true},
		"a policy's label is not, for its status":  {policyStatusMoved, before(counting(3)), counting(3), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := whenUpdated(tc.changed).Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
				t.Errorf("looked at = %v, want %v", got, tc.want)
			}
		})
	}
}
