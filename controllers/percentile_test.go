package controllers

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"rekindle.edge/api/v1alpha1"
)

func TestRecoveryStats(t *testing.T) {
	stats := func(samples int32, p50, p90, p95, longest *int64) *v1alpha1.RecoveryStats {
		return &v1alpha1.RecoveryStats{Samples: samples, P50Milliseconds: p50, P90Milliseconds: p90, P95Milliseconds: p95, MaxMilliseconds: longest}
	}
	ms := func(n int64) *int64 { return ptr.To(n) }
	upTo := func(n int64) (lengths []int64) {
		for i := n; i > 0; i-- {
			lengths = append(lengths, i*100)
		}
		return lengths
	}
	cases := map[string]struct {
		lengths []int64
		want    *v1alpha1.RecoveryStats
	}{
		"no sample, no figures":                    {nil, nil},
		"one sample is every percentile":           {[]int64{700}, stats(1, ms(700), ms(700), ms(700), ms(700))},
		"of two, the median is the lower":          {[]int64{2, 1}, stats(2, ms(1), ms(2), ms(2), ms(2))},
		"ranks of 20 are 10, 18 and 19, unsorted":  {upTo(20), stats(20, ms(1000), ms(1800), ms(1900), ms(2000))},
		"ranks of 100 are 50, 90 and 95":           {upTo(100), stats(100, ms(5000), ms(9000), ms(9500), ms(10000))},
		"one incomplete of 20 is the slowest only": {append(upTo(19), incomplete), stats(20, ms(1000), ms(1800), ms(1900), nil)},
		"two incomplete of 20 take the 95th too":   {append(upTo(18), incomplete, incomplete), stats(20, ms(1000), ms(1800), nil, nil)},
		"a single incomplete one has no figure":    {[]int64{incomplete}, stats(1, nil, nil, nil, nil)},
		"half of them incomplete, the median is":   {[]int64{incomplete, 5}, stats(2, ms(5), nil, nil, nil)},
		"a length of zero is a length":             {[]int64{0}, stats(1, ms(0), ms(0), ms(0), ms(0))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, recoveryStats(slices.Clone(tc.lengths))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNearestRankIsTheDefinition(t *testing.T) {
	// The smallest value that at least p per cent of all do not exceed, found the slow way.
	for n := 1; n <= 200; n++ {
		sorted := make([]int64, n)
		for i := range sorted {
			sorted[i] = int64(i)
		}
		for _, percent := range []int{1, 50, 90, 95, 99, 100} {
			want := 0
			for (want+1)*100 < percent*n {
				want++
			}
			if got := nearestRank(sorted, percent); got != int64(want) {
				t.Fatalf("rank of %d %% of %d values = %d, want %d", percent, n, got, want)
			}
		}
	}
}

func TestLength(t *testing.T) {
	cases := map[string]struct {
		recovery v1alpha1.Recovery
		want     int64
	}{
		"a complete one is as long as it took": {took(5, v1alpha1.ConnectivityOnline), 5},
		"an incomplete one is endless":         {failed(v1alpha1.ConnectivityOnline), incomplete},
		"an incomplete one is endless, whatever total it names": {
			v1alpha1.Recovery{Result: v1alpha1.RecoveryIncomplete, TotalMilliseconds: ptr.To[int64](5)}, incomplete},
		"a complete one without a total is endless": {v1alpha1.Recovery{Result: v1alpha1.RecoveryComplete}, incomplete},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := length(&tc.recovery); got != tc.want {
				t.Errorf("length = %d, want %d", got, tc.want)
			}
		})
	}
}
