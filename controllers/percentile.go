package controllers

import (
	"math"
	"slices"

	"k8s.io/utils/ptr"

	"rekindle.edge/api/v1alpha1"
)

// incomplete is the length of a recovery that did not complete: slower than every one
// that did. Dropping such recoveries would make a pool that fails look fast.
const incomplete = int64(math.MaxInt64)

// length returns the length of a finished recovery in milliseconds.
func length(recovery *v1alpha1.Recovery) int64 {
	if recovery.Result == v1alpha1.RecoveryComplete && recovery.TotalMilliseconds != nil {
		return *recovery.TotalMilliseconds
	}
	return incomplete
}

// finished says whether the record is closed. One that is still being measured is no sample.
func finished(recovery *v1alpha1.Recovery) bool {
	return recovery.Result != ""
}

// recoveryStats returns the nearest-rank percentiles of the lengths, nil for no lengths.
// It sorts its argument.
func recoveryStats(lengths []int64) *v1alpha1.RecoveryStats {
	if len(lengths) == 0 {
		return nil
	}
	slices.Sort(lengths)
	return &v1alpha1.RecoveryStats{
		Samples:         int32(len(lengths)),
		P50Milliseconds: complete(nearestRank(lengths, 50)),
		P90Milliseconds: complete(nearestRank(lengths, 90)),
		P95Milliseconds: complete(nearestRank(lengths, 95)),
		MaxMilliseconds: complete(lengths[len(lengths)-1]),
	}
}

// nearestRank returns the smallest of the sorted lengths that at least percent per cent of
// them do not exceed. In integers: 0.95*20 is not 19 in floating point.
func nearestRank(sorted []int64, percent int) int64 {
	rank := (len(sorted)*percent + 99) / 100
	return sorted[rank-1]
}

// complete returns nil for an incomplete recovery.
func complete(length int64) *int64 {
	if length == incomplete {
		return nil
	}
	return ptr.To(length)
}
