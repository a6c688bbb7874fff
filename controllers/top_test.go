package controllers

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"rekindle.edge/api/v1alpha1"
)

func TestSlowestNodes(t *testing.T) {
	policy := makePolicy("p").obj()
	withPhases := took(9000, off)
	withPhases.Phases = v1alpha1.RecoveryPhases{Kernel: ptr.To[int64](4000), PodList: ptr.To[int64](1000), LastReady: ptr.To[int64](4000)}

	got := sumUp(policy,
		follow(policy, "never", ""),
		follower{node: makeNode("no-record")},
		follow(policy, "now-running", "", measuring(running(), took(2000, on), took(90_000, on))),
		follow(policy, "fast", "", measuring(took(1000, on))),
		follow(policy, "phases", "", measuring(withPhases)),
		follow(policy, "b-failed", "", measuring(failed(off), took(1, on))),
		follow(policy, "a-failed", "", measuring(failed(off))),
	).SlowestNodes
	want := []v1alpha1.SlowNode{
		{Node: "a-failed"},
		{Node: "b-failed"},
		{Node: "phases", TotalMilliseconds: ptr.To[int64](9000), SlowestPhase: "kernel", SlowestPhaseMilliseconds: ptr.To[int64](4000)},
		{Node: "now-running", TotalMilliseconds: ptr.To[int64](2000)},
		{Node: "fast", TotalMilliseconds: ptr.To[int64](1000)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSlowestPhase(t *testing.T) {
	ms := func(n int64) *int64 { return &n }
	cases := map[string]struct {
		phases v1alpha1.RecoveryPhases
		want   string
		wantMs *int64
	}{
		"no phase was observed": {v1alpha1.RecoveryPhases{}, "", nil},
		"the longest is named by its field": {
			v1alpha1.RecoveryPhases{Userspace: ms(1), KubeletStart: ms(2), NodeList: ms(3), FirstSandbox: ms(5), FirstReady: ms(4)}, "firstSandbox", ms(5)},
		"a phase that took no time is still one": {v1alpha1.RecoveryPhases{PodList: ms(0)}, "podList", ms(0)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			phase, milliseconds := slowestPhase(&tc.phases)
			if phase != tc.want || cmp.Diff(tc.wantMs, milliseconds) != "" {
				t.Errorf("got %q %v, want %q %v", phase, milliseconds, tc.want, tc.wantMs)
			}
		})
	}
}

func TestTopReasonsCountNodesInReach(t *testing.T) {
	policy := makePolicy("p").obj()
	got := sumUp(policy,
		follow(policy, "a", "", saying(metav1.ConditionFalse, "Rare", "Common", "Common", "Common")),
		follow(policy, "b", "", saying(metav1.ConditionFalse, "Common", "AlsoRare")),
		offline(follow(policy, "c", "", saying(metav1.ConditionFalse, "Rare", "Rare"))),
	).TopReasons
	want := []v1alpha1.ReasonCount{{Reason: "Common", Nodes: 2, Severity: v1alpha1.SeverityBlocksPod}, {Reason: "AlsoRare", Nodes: 1, Severity: v1alpha1.SeverityBlocksPod}, {Reason: "Rare", Nodes: 1, Severity: v1alpha1.SeverityBlocksPod}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReasonsThatBlockComeFirst(t *testing.T) {
	finding := func(reason string, severity v1alpha1.Severity) v1alpha1.Finding {
		return v1alpha1.Finding{Reason: reason, Severity: severity}
	}
	reasons := map[string]v1alpha1.ReasonCount{}
	for range 3 {
		count(reasons, []v1alpha1.Finding{finding("Unpinned", v1alpha1.SeveritySlows)})
	}
	count(reasons, []v1alpha1.Finding{finding("Disk", v1alpha1.SeveritySlows), finding("Image", v1alpha1.SeverityBlocksPod), finding("Image", v1alpha1.SeverityBlocksPod)})
	count(reasons, []v1alpha1.Finding{finding("Disk", v1alpha1.SeverityBlocksNode), finding("Disk", v1alpha1.SeveritySlows)})
	want := []v1alpha1.ReasonCount{
		{Reason: "Disk", Nodes: 2, Severity: v1alpha1.SeverityBlocksNode}, {Reason: "Image", Nodes: 1, Severity: v1alpha1.SeverityBlocksPod},
		{Reason: "Unpinned", Nodes: 3, Severity: v1alpha1.SeveritySlows},
	}
	if diff := cmp.Diff(want, topReasons(reasons)); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
}

func TestMissedResourcesCountNodes(t *testing.T) {
	missing := func(resources ...v1alpha1.MissedResource) func(*v1alpha1.NodeRecovery) {
		return func(r *v1alpha1.NodeRecovery) { r.Status.MissedResources = resources }
	}
	policy := makePolicy("p").obj()
	deployments, pods := v1alpha1.MissedResource{Group: "apps", Resource: "deployments"}, v1alpha1.MissedResource{Resource: "pods"}
	byOther := deployments
	byOther.Client, byOther.Count = "other", 1000
	got := sumUp(policy,
		follow(policy, "a", "", missing(deployments, byOther, pods)),
		offline(follow(policy, "b", "", missing(deployments))),
	).MissedResources
	want := []v1alpha1.MissedResourceCount{{Group: "apps", Resource: "deployments", Nodes: 2}, {Resource: "pods", Nodes: 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestListsKeepTheirBounds(t *testing.T) {
	policy := makePolicy("p").obj()
	var followers []follower
	for i := range 100 {
		recovery := took(int64(1000+i), on)
		if i >= 90 {
			recovery = took(99_000, on) // misses the target
		}
		followers = append(followers, follow(policy, fmt.Sprintf("node-%02d", i), fmt.Sprintf("pool-%02d", i),
			measuring(recovery),
			saying(metav1.ConditionFalse, fmt.Sprintf("Reason%02d", i)),
			func(r *v1alpha1.NodeRecovery) {
				r.Status.MissedResources = []v1alpha1.MissedResource{{Resource: fmt.Sprintf("resource%02d", i)}}
			}))
	}
	status := sumUp(policy, followers...)
	for name, got := range map[string][2]int{
		"pools":           {len(status.Pools), 64},
		"slowestNodes":    {len(status.SlowestNodes), 10},
		"topReasons":      {len(status.TopReasons), 10},
		"missedResources": {len(status.MissedResources), 10},
	} {
		if got[0] != got[1] {
			t.Errorf("%s has %d entries, want %d", name, got[0], got[1])
		}
	}
	for i, want := range map[int]string{0: "pool-90", 9: "pool-99", 10: "pool-00", 63: "pool-53"} {
		if status.Pools[i].Name != want {
			t.Errorf("pool %d is %s, want %s: those that miss their target first, then by name", i, status.Pools[i].Name, want)
		}
	}
	if *status.P95Milliseconds != 99_000 {
		t.Errorf("p95 = %d, want that of all pools, shown or not", *status.P95Milliseconds)
	}
}
