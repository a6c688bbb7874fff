package main

import (
	"testing"
	"testing/synctest"
	"time"

	"rekindle.edge/agent/mirror"
)

func TestAKubeletThatRunsIsLeftAloneUntilTheModeIsKnown(t *testing.T) {
	cases := map[string]struct {
		opened  time.Duration // when the store is; 0: never
		unknown bool          // it has no policy
		want    time.Duration // until when the mode is undecided
	}{
		"a store with a policy":                             {opened: 3 * time.Second, want: 3 * time.Second},
		"a new store, until the API server would have said": {opened: 3 * time.Second, unknown: true, want: 3*time.Second + unknownLimit},
		"a store that cannot be opened":                     {want: unknownLimit},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				m := newMode()
				for m.undecided() && time.Since(begin) < time.Minute {
					time.Sleep(time.Second)
					if time.Since(begin) == tc.opened {
						m.open(&mirror.Mirror{}, func() bool { return tc.unknown })
					}
				}
				if got := time.Since(begin); got != tc.want {
					t.Errorf("undecided for %s, want %s", got, tc.want)
				}
			})
		})
	}
}
