package images

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"rekindle.edge/api/v1alpha1"
)

func TestDecide(t *testing.T) {
	enforce := options{pinning: true, acting: true}
	budget := options{pinning: true, acting: true, budget: 100}
	mine := record{pinned: true, ours: true}
	others := record{pinned: true}
	wants := func(references ...string) []want {
		var all []want
		for _, r := range references {
			all = append(all, want{reference: r})
		}
		return all
	}
	type result struct {
		Pull              string
		Pin, Unpin, Evict []string
		Status            v1alpha1.ImagesStatus
	}
	problems := func(pairs ...string) []v1alpha1.ImageProblem {
		var all []v1alpha1.ImageProblem
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, v1alpha1.ImageProblem{Image: pairs[i], Reason: pairs[i+1]})
		}
		return all
	}
	cases := map[string]struct {
		options options
		facts   facts
		want    result
	}{
		"the most important missing image is pulled": {
			enforce, facts{wanted: wants("a", "b")},
			result{Pull: "a", Status: v1alpha1.ImagesStatus{Wanted: 2, Problems: problems("a", "NotPresent", "b", "NotPresent")}},
		},
		"one that has to wait lets the next go first": {
			enforce, facts{wanted: wants("a", "b"), failed: map[string]string{"a": "PullFailed"}, blocked: func(w want) bool { return w.reference == "a" }},
			result{Pull: "b", Status: v1alpha1.ImagesStatus{Wanted: 2, Problems: problems("a", "PullFailed", "b", "NotPresent")}},
		},
		"what is there is pinned": {
			enforce, facts{wanted: wants("a"), stock: stock{images: map[string]present{"a": {"1", 10}}, records: map[string]record{"a": {}}}},
			result{Pin: []string{"a"}, Status: v1alpha1.ImagesStatus{Wanted: 1, Present: 1, Pinned: 1, Bytes: 10}},
		},
		"what somebody else has pinned is left alone": {
			enforce, facts{wanted: wants("a"), stock: stock{images: map[string]present{"a": {"1", 10}}, records: map[string]record{"a": others, "b": others}}},
			result{Status: v1alpha1.ImagesStatus{Wanted: 1, Present: 1, Pinned: 1, Bytes: 10}},
		},
		"what is not wanted any more is unpinned": {
			enforce, facts{stock: stock{records: map[string]record{"a": mine, "b": others}}},
			result{Unpin: []string{"a"}},
		},
		"without pinning the agent's pins are taken away": {
			options{acting: true}, facts{wanted: wants("a"), stock: stock{images: map[string]present{"a": {"1", 10}}, records: map[string]record{"a": mine}}},
			result{Unpin: []string{"a"}, Status: v1alpha1.ImagesStatus{Wanted: 1, Present: 1, Pinned: 1, Bytes: 10}},
		},
		"mode Observe only looks": {
			options{pinning: true}, facts{wanted: wants("a", "b"), stock: stock{images: map[string]present{"a": {"1", 10}}, records: map[string]record{"a": {}}}},
			result{Status: v1alpha1.ImagesStatus{Wanted: 2, Present: 1, Bytes: 10, Problems: problems("b", "NotPresent")}},
		},
		"what does not fit leaves its room to what comes after it": {
			budget, facts{wanted: wants("a", "b", "c"), stock: stock{
				images:  map[string]present{"a": {"1", 60}, "b": {"2", 60}, "c": {"3", 40}},
				records: map[string]record{"a": mine, "b": mine, "c": mine},
			}},
			result{Unpin: []string{"b"}, Status: v1alpha1.ImagesStatus{Wanted: 3, Present: 2, Pinned: 2, Bytes: 100, Problems: problems("b", "OverBudget")}},
		},
		"what was pulled and does not fit is removed": {
			budget, facts{wanted: wants("a", "b"), stock: stock{
				images: map[string]present{"a": {"1", 60}, "b": {"2", 60}}, records: map[string]record{"a": mine, "b": {pulled: true}},
			}},
			result{Evict: []string{"b"}, Status: v1alpha1.ImagesStatus{Wanted: 2, Present: 1, Pinned: 1, Bytes: 60, Problems: problems("b", "OverBudget")}},
		},
		"what has another tag is not removed": {
			budget, facts{wanted: wants("a", "b"), stock: stock{
				images: map[string]present{"a": {"1", 60}, "b": {"2", 60}, "b@sha256:2": {"2", 60}, "other": {"2", 60}}, records: map[string]record{"a": mine, "b": {pulled: true}},
			}},
			result{Status: v1alpha1.ImagesStatus{Wanted: 2, Present: 1, Pinned: 1, Bytes: 60, Problems: problems("b", "OverBudget")}},
		},
		"what a pod uses is not removed": {
			budget, facts{wanted: []want{{reference: "a"}, {reference: "b", pods: true}}, stock: stock{
				images: map[string]present{"a": {"1", 60}, "b": {"2", 60}}, records: map[string]record{"a": mine, "b": {pulled: true}},
			}},
			result{Status: v1alpha1.ImagesStatus{Wanted: 2, Present: 1, Pinned: 1, Bytes: 60, Problems: problems("b", "OverBudget")}},
		},
		"what is known to be too large is not pulled": {
			budget, facts{wanted: wants("a", "b"), sizes: map[string]int64{"b": 60}, stock: stock{
				images: map[string]present{"a": {"1", 60}}, records: map[string]record{"a": mine},
			}},
			result{Status: v1alpha1.ImagesStatus{Wanted: 2, Present: 1, Pinned: 1, Bytes: 60, Problems: problems("b", "OverBudget")}},
		},
		"two names of one image count once": {
			budget, facts{wanted: wants("a", "b"), stock: stock{
				images: map[string]present{"a": {"1", 60}, "b": {"1", 60}}, records: map[string]record{"a": mine, "b": mine},
			}},
			result{Status: v1alpha1.ImagesStatus{Wanted: 2, Present: 2, Pinned: 2, Bytes: 60}},
		},
		"what is damaged is not there": {
			enforce, facts{wanted: wants("a"), damaged: map[string]bool{"1": true}, stock: stock{images: map[string]present{"a": {"1", 10}}, records: map[string]record{"a": mine}}},
			result{Status: v1alpha1.ImagesStatus{Wanted: 1, Pinned: 1, Bytes: 10, Problems: problems("a", "Damaged")}},
		},
		"a runtime that is not containerd pins nothing": {
			enforce, facts{wanted: wants("a"), stock: stock{images: map[string]present{"a": {"1", 10}}}},
			result{Status: v1alpha1.ImagesStatus{Wanted: 1, Present: 1, Bytes: 10, Problems: problems("a", "NotPinned")}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.facts.blocked == nil {
				tc.facts.blocked = func(want) bool { return false }
			}
			p := decide(tc.options, tc.facts)
			got := result{Pin: p.pin, Unpin: p.unpin, Evict: p.evict, Status: p.status}
			if p.pull != nil {
				got.Pull = p.pull.reference
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}
