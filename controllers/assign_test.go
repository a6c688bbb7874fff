package controllers

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rekindle.edge/api/v1alpha1"
)

func TestAssign(t *testing.T) {
	cases := map[string]struct {
		policies []*policyBuilder
		holder   string
		want     string
	}{
		"no policy, none followed": {nil, "", ""},
		"a policy that does not select the node is not followed": {
			[]*policyBuilder{makePolicy("a").selecting("x", "other")}, "a", ""},
		"the higher priority wins over age and name": {
			[]*policyBuilder{makePolicy("a").olderBy(time.Hour), makePolicy("z").priority(1)}, "a", "z"},
		"a higher priority that does not select the node changes nothing": {
			[]*policyBuilder{makePolicy("a"), makePolicy("z").priority(1).selecting("x", "other")}, "", "a"},
		"the older of equal priorities wins over the name": {
			[]*policyBuilder{makePolicy("a"), makePolicy("z").olderBy(time.Second)}, "a", "z"},
		"the first name of equal ages wins": {
			[]*policyBuilder{makePolicy("b"), makePolicy("a"), makePolicy("c")}, "c", "a"},
		"a policy that is being deleted is not followed any more": {
			[]*policyBuilder{makePolicy("a").priority(9).deleted(), makePolicy("b")}, "a", "b"},
		"a policy whose node selector cannot be parsed keeps the node that it has": {
			[]*policyBuilder{makePolicy("a").priority(1).badNodeSelector(), makePolicy("b")}, "a", "a"},
		"a policy whose node selector cannot be parsed takes no new node": {
			[]*policyBuilder{makePolicy("a").priority(1).badNodeSelector(), makePolicy("b")}, "b", "b"},
		"a better policy takes a node from one that cannot be parsed": {
			[]*policyBuilder{makePolicy("a").badNodeSelector(), makePolicy("b").priority(1)}, "a", "b"},
		"a policy with a bad stage keeps the node that it has": {
			[]*policyBuilder{makePolicy("a").badStage()}, "a", "a"},
		"a policy with a bad stage takes no new node": {
			[]*policyBuilder{makePolicy("a").badStage()}, "", ""},
		"a policy with a bad stage lets a node go that it no longer selects": {
			[]*policyBuilder{makePolicy("a").badStage().selecting("x", "other")}, "a", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for range 2 { // whatever the order in which the cache hands them out
				got := ""
				if c := assign(ranked(tc.policies...), map[string]string{"x": "y"}, tc.holder); c != nil {
					got = c.policy.Name
				}
				if got != tc.want {
					t.Errorf("follows %q, want %q", got, tc.want)
				}
				slices.Reverse(tc.policies)
			}
		})
	}
}

func TestMembersOf(t *testing.T) {
	policy := makePolicy("p").selecting("x", "y")
	mine, theirs, fresh, other := makeNode("mine", "x", "y"), makeNode("theirs", "x", "y", "better", "yes"), makeNode("fresh", "x", "y"), makeNode("other")
	better := makePolicy("better").priority(1).selecting("better", "yes")
	anew := makeNode("anew", "x", "y")
	old := makeRecovery(policy.obj(), makeNode("anew"))
	old.OwnerReferences[0].UID = "of-the-node-before"

	nodes := nodeList(mine, theirs, fresh, other, anew)
	recoveries := []v1alpha1.NodeRecovery{*makeRecovery(policy.obj(), mine), *makeRecovery(policy.obj(), theirs), *old}
	members := membersOf(policy.obj(), ranked(policy, better), nodes, recoveries)
	if members.matched != 4 {
		t.Errorf("matched = %d, want 4: mine, theirs, fresh, anew", members.matched)
	}
	if diff := cmp.Diff(map[string]int{"better": 1}, members.taken); diff != "" {
		t.Errorf("taken: %s", diff)
	}
	got := map[string]bool{}
	for _, f := range members.followers {
		got[f.node.Name] = f.recovery != nil
	}
	want := map[string]bool{"mine": true, "fresh": false, "anew": false}
	if len(got) != len(want) {
		t.Errorf("followers = %v, want %v", got, want)
	}
	for name, reported := range want {
		if has, is := got[name]; !is || has != reported {
			t.Errorf("followers = %v, want %v (name: whether it has a NodeRecovery of its own)", got, want)
		}
	}
	if gone := membersOf(policy.obj(), ranked(better), nodes, recoveries); gone.matched != 0 || gone.followers != nil {
		t.Errorf("a policy that is gone has %d nodes and %d followers, want none", gone.matched, len(gone.followers))
	}
}
