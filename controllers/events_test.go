package controllers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/api/v1alpha1"
)

func TestPolicyEvents(t *testing.T) {
	status := func(accepted, acceptedReason, met string) *v1alpha1.EdgeRecoveryPolicyStatus {
		s := &v1alpha1.EdgeRecoveryPolicyStatus{}
		if accepted != "" {
			s.Conditions = append(s.Conditions, metav1.Condition{Type: "Accepted", Status: metav1.ConditionStatus(accepted), Reason: acceptedReason, Message: "about nodes"})
		}
		if met != "" {
			s.Conditions = append(s.Conditions, metav1.Condition{Type: "TargetMet", Status: metav1.ConditionStatus(met), Reason: "Any", Message: "about pools"})
		}
		return s
	}
	cases := map[string]struct {
		before, after *v1alpha1.EdgeRecoveryPolicyStatus
		want          []string
	}{
		"a new policy that is carried out":            {status("", "", ""), status("True", "Accepted", "Unknown"), []string{"Normal Accepted"}},
		"a new policy that selects nothing":           {status("", "", ""), status("False", "NoMatchingNodes", "Unknown"), []string{"Warning NoMatchingNodes"}},
		"a policy that is spoilt":                     {status("True", "Accepted", ""), status("False", "InvalidSelector", ""), []string{"Warning InvalidSelector"}},
		"a policy that loses some nodes to a better":  {status("True", "Accepted", ""), status("True", "PartlyOverridden", ""), []string{"Normal PartlyOverridden"}},
		"a policy that loses all nodes to a better":   {status("True", "Accepted", ""), status("False", "Overridden", ""), []string{"Warning Overridden"}},
		"the same again, with other counts":           {status("True", "Accepted", "True"), status("True", "Accepted", "True"), nil},
		"the first measured restart, within target":   {status("True", "Accepted", "Unknown"), status("True", "Accepted", "True"), []string{"Normal TargetMet"}},
		"a target that is missed":                     {status("True", "Accepted", "True"), status("True", "Accepted", "False"), []string{"Warning TargetMissed"}},
		"a target that is met again":                  {status("True", "Accepted", "False"), status("True", "Accepted", "True"), []string{"Normal TargetMet"}},
		"samples that are gone are nothing to act on": {status("True", "Accepted", "False"), status("True", "Accepted", "Unknown"), nil},
	}
	ready := func(status metav1.ConditionStatus) *v1alpha1.EdgeRecoveryPolicyStatus {
		return &v1alpha1.EdgeRecoveryPolicyStatus{Conditions: []metav1.Condition{{Type: "RestartReady", Status: status, Reason: "Any", Message: "about nodes"}}}
	}
	for name, steps := range map[string]struct {
		before, after metav1.ConditionStatus
		want          []string
	}{
		"the first verdict, all would come back": {"Unknown", "True", []string{"Normal RestartReady"}},
		"a node would not come back any more":    {"True", "False", []string{"Warning NodesNotReady"}},
		"all would come back again":              {"False", "True", []string{"Normal RestartReady"}},
		"more nodes would not come back":         {"False", "False", nil},
		"no node is in reach":                    {"True", "Unknown", nil},
	} {
		cases[name] = struct {
			before, after *v1alpha1.EdgeRecoveryPolicyStatus
			want          []string
		}{ready(steps.before), ready(steps.after), steps.want}
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range policyEvents(tc.before, tc.after) {
				got = append(got, e.kind+" "+e.reason)
				if e.note == "" || e.action == "" {
					t.Errorf("event %s has note %q and action %q", e.reason, e.note, e.action)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
