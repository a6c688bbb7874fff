package snapshot

import (
	"testing"
	"time"
)

func TestWhenAGenerationIsSealed(t *testing.T) {
	start := time.Unix(1764504000, 0)
	// at is how often, within a day, a node seals that changes so.
	count := func(change func(second int) (changed, pods bool)) int {
		var policy sealing
		var changed, pods uint64
		sealed := 0
		for second := range 24 * 3600 {
			now := start.Add(time.Duration(second) * time.Second)
			c, p := change(second)
			if c || p {
				changed++
			}
			if p {
				pods++
			}
			if policy.due(now, changed, pods) {
				policy.done(now, changed, pods)
				sealed++
			}
		}
		return sealed
	}
	cases := map[string]struct {
		change   func(second int) (changed, pods bool)
		min, max int
	}{
		"an idle node seals once":                     {func(int) (bool, bool) { return false, false }, 1, 1},
		"changes of state every minute, once an hour": {func(s int) (bool, bool) { return s%60 == 0, false }, 23, 24},
		"pods every minute, every ten minutes":        {func(s int) (bool, bool) { return false, s%60 == 0 }, 130, 144},
		"one new pod, soon":                           {func(s int) (bool, bool) { return false, s == 3600 }, 2, 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := count(tc.change); got < tc.min || got > tc.max {
				t.Errorf("sealed %d times, want %d to %d", got, tc.min, tc.max)
			}
		})
	}
}
