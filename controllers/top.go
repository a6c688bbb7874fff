package controllers

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/utils/ptr"

	"rekindle.edge/api/v1alpha1"
)

// maxTop is the bound of slowestNodes, topReasons and missedResources.
const maxTop = 10

// slowestNodes returns the nodes whose newest finished recovery took longest.
func slowestNodes(followers []follower) []v1alpha1.SlowNode {
	type slow struct {
		node     string
		length   int64
		recovery *v1alpha1.Recovery
	}
	var all []slow
	for _, f := range followers {
		if newest := newestFinished(f.recovery); newest != nil {
			all = append(all, slow{f.node.Name, length(newest), newest})
		}
	}
	slices.SortFunc(all, func(a, b slow) int {
		return cmp.Or(cmp.Compare(b.length, a.length), cmp.Compare(a.node, b.node))
	})
	var nodes []v1alpha1.SlowNode
	for _, s := range all[:min(len(all), maxTop)] {
		phase, milliseconds := slowestPhase(&s.recovery.Phases)
		nodes = append(nodes, v1alpha1.SlowNode{
			Node:                     s.node,
			TotalMilliseconds:        complete(s.length),
			SlowestPhase:             phase,
			SlowestPhaseMilliseconds: milliseconds,
		})
	}
	return nodes
}

// newestFinished returns the first closed record, nil if there is none.
func newestFinished(recovery *v1alpha1.NodeRecovery) *v1alpha1.Recovery {
	if recovery == nil {
		return nil
	}
	for i := range recovery.Status.Recoveries {
		if finished(&recovery.Status.Recoveries[i]) {
			return &recovery.Status.Recoveries[i]
		}
	}
	return nil
}

// slowestPhase returns the field name and the length of the longest phase that is set, the
// earlier one of equals.
func slowestPhase(p *v1alpha1.RecoveryPhases) (string, *int64) {
	var name string
	var longest *int64
	for _, phase := range []struct {
		name         string
		milliseconds *int64
	}{
		{"kernel", p.Kernel},
		{"userspace", p.Userspace},
		{"kubeletStart", p.KubeletStart},
		{"nodeList", p.NodeList},
		{"podList", p.PodList},
		{"firstSandbox", p.FirstSandbox},
		{"firstReady", p.FirstReady},
		{"lastReady", p.LastReady},
	} {
		if phase.milliseconds != nil && (longest == nil || *phase.milliseconds > *longest) {
			name, longest = phase.name, ptr.To(*phase.milliseconds)
		}
	}
	return name, longest
}

// topReasons returns the findings that most nodes have, by name among equals; those that keep
// a node or a pod from coming back before those that slow it.
func topReasons(reasons map[string]v1alpha1.ReasonCount) []v1alpha1.ReasonCount {
	slows := func(r v1alpha1.ReasonCount) int {
		if r.Severity == v1alpha1.SeveritySlows {
			return 1
		}
		return 0
	}
	counts := slices.SortedFunc(maps.Values(reasons), func(a, b v1alpha1.ReasonCount) int {
		return cmp.Or(cmp.Compare(slows(a), slows(b)), cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Reason, b.Reason))
	})
	return counts[:min(len(counts), maxTop)]
}

// count adds a node's findings: one of each reason, with its worst severity.
func count(reasons map[string]v1alpha1.ReasonCount, findings []v1alpha1.Finding) {
	order := []v1alpha1.Severity{"", v1alpha1.SeveritySlows, v1alpha1.SeverityBlocksPod, v1alpha1.SeverityBlocksNode}
	seen := map[string]bool{}
	for _, finding := range findings {
		sum := reasons[finding.Reason]
		sum.Reason = finding.Reason
		if !seen[finding.Reason] {
			seen[finding.Reason] = true
			sum.Nodes++
		}
		if slices.Index(order, finding.Severity) > slices.Index(order, sum.Severity) {
			sum.Severity = finding.Severity
		}
		reasons[finding.Reason] = sum
	}
}

// topMissed returns the resources that were missed on most nodes, by name among equals.
func topMissed(nodes map[missedResource]int32) []v1alpha1.MissedResourceCount {
	var counts []v1alpha1.MissedResourceCount
	for missed, n := range nodes {
		counts = append(counts, v1alpha1.MissedResourceCount{Group: missed.group, Resource: missed.resource, Nodes: n})
	}
	slices.SortFunc(counts, func(a, b v1alpha1.MissedResourceCount) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
	return counts[:min(len(counts), maxTop)]
}
