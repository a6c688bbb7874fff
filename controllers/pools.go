package controllers

import (
	"maps"
	"slices"
	"strings"

	"rekindle.edge/api/v1alpha1"
)

// maxPools is the bound of status.pools.
const maxPools = 64

// poolStatuses returns the status of every pool, by name, and the 95th percentile of the
// slowest: nil if nothing was measured, or if one falls on an incomplete recovery.
func poolStatuses(policy *v1alpha1.EdgeRecoveryPolicy, pools map[string]*poolSummary) ([]v1alpha1.PoolStatus, *int64) {
	statuses := make([]v1alpha1.PoolStatus, 0, len(pools))
	slowest := int64(-1)
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		pool := pools[name]
		status := v1alpha1.PoolStatus{
			Name:          name,
			TargetSeconds: targetOf(policy, name).RecoverySeconds,
			Nodes:         pool.nodes,
			RestartReady:  pool.restartReady,
			Offline:       recoveryStats(pool.offline),
			Online:        recoveryStats(pool.online),
			TargetMet:     v1alpha1.TruthUnknown,
		}
		if p95, measured := slowerP95(status.Offline, status.Online); measured {
			slowest = max(slowest, p95)
			status.TargetMet = v1alpha1.TruthFalse
			if p95 <= int64(status.TargetSeconds)*1000 {
				status.TargetMet = v1alpha1.TruthTrue
			}
		}
		statuses = append(statuses, status)
	}
	if slowest < 0 {
		return statuses, nil
	}
	return statuses, complete(slowest)
}

// slowerP95 returns the greater 95th percentile of the classes that have samples.
func slowerP95(classes ...*v1alpha1.RecoveryStats) (p95 int64, measured bool) {
	for _, class := range classes {
		switch {
		case class == nil:
			continue
		case class.P95Milliseconds == nil:
			p95 = incomplete
		default:
			p95 = max(p95, *class.P95Milliseconds)
		}
		measured = true
	}
	return p95, measured
}

// boundPools returns the pools that the status has room for: all, by name; or, with more
// than that, those that miss their target first.
func boundPools(pools []v1alpha1.PoolStatus) []v1alpha1.PoolStatus {
	if len(pools) <= maxPools {
		return pools
	}
	slices.SortFunc(pools, func(a, b v1alpha1.PoolStatus) int {
		aMisses, bMisses := a.TargetMet == v1alpha1.TruthFalse, b.TargetMet == v1alpha1.TruthFalse
		switch {
		case aMisses && !bMisses:
			return -1
		case bMisses && !aMisses:
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return pools[:maxPools]
}
