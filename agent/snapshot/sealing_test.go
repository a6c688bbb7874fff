package snapshot

import (
	"testing"
	"time"
)

func TestWhenAGenerationIsSealed(t *testing.T) {
	start := time.Unix(1764504000, 0)
	// at is how often, within a day, a node seals that changes so.
	count := func(change func(second int) (changed, pods, policy bool)) int {
		var policy sealing
		var count changes
		sealed := 0
		for second := range 24 * 3600 {
			now := start.Add(time.Duration(second) * time.Second)
			changed, pods, spec := change(second)
			if changed || pods || spec {
				count.all++
			}
			if pods {
				count.pods++
			}
			if spec {
				count.policy++
			}
			if policy.due(now, count) {
				policy.done(now, count)
				sealed++
			}
		}
		return sealed
	}
	cases := map[string]struct {
		change   func(second int) (changed, pods, policy bool)
		min, max int
	}{
		"an idle node seals once":                     {func(int) (bool, bool, bool) { return false, false, false }, 1, 1},
		"changes of state every minute, once an hour": {func(s int) (bool, bool, bool) { return s%60 == 0, false, false }, 23, 24},
		"pods every minute, every ten minutes":        {func(s int) (bool, bool, bool) { return false, s%60 == 0, false }, 130, 144},
		"one new pod, soon":                           {func(s int) (bool, bool, bool) { return false, s == 3600, false }, 2, 2},
		"a new policy, within a minute":               {func(s int) (bool, bool, bool) { return s%30 == 0 && s < 120, false, s == 40 }, 2, 3},
		"a policy every 20 s, once a minute at most":  {func(s int) (bool, bool, bool) { return false, false, s%20 == 0 }, 1400, 1440},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := count(tc.change); got < tc.min || got > tc.max {
				t.Errorf("sealed %d times, want %d to %d", got, tc.min, tc.max)
			}
		})
	}
}
