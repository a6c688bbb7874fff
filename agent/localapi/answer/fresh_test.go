package answer

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// TestFreshnessWait: a list of the first seconds of a boot, and how long it is held.
func TestFreshnessWait(t *testing.T) {
	const never = -1
	cases := map[string]struct {
		// upAfter the start there is a way to the API server.
		upAfter time.Duration
		// asked and synced are after the start; synced never: the mirror hears nothing.
		asked, synced time.Duration
		reach         Reach
		want          time.Duration
	}{
		"a link that is up: from the start":                              {synced: never, want: time.Second},
		"until the mirror has it":                                        {synced: 300 * time.Millisecond, want: 300 * time.Millisecond},
		"a boot without a link waits for nothing":                        {upAfter: never, synced: never},
		"a list before the link is up does not wait for it":              {upAfter: 3 * time.Second, synced: never},
		"a link that is up late: from then on":                           {upAfter: 3 * time.Second, asked: 3200 * time.Millisecond, synced: never, want: 800 * time.Millisecond},
		"a link that is up late, and the mirror soon after":              {upAfter: 20 * time.Second, asked: 20 * time.Second, synced: 20*time.Second + 400*time.Millisecond, want: 400 * time.Millisecond},
		"once the wait is over no list waits":                            {upAfter: 3 * time.Second, asked: 5 * time.Second, synced: never},
		"an API server that refuses ends it at once":                     {reach: CutOff, synced: never},
		"one that has answered is waited for as long, for the mirror":    {reach: Linked, synced: never, want: time.Second},
		"a collection that is in step from before the boot is not fresh": {synced: -2 * time.Second, want: time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				objects := newStore()
				h := &Handler{
					Log: logr.Discard(), Objects: objects, Upstream: &link{reach: tc.reach},
					FreshnessWait: func() time.Duration { return time.Second },
					Uplink: func() (time.Time, bool) {
						return start.Add(tc.upAfter), tc.upAfter != never && time.Since(start) >= tc.upAfter
					},
				}
				defer New(h, clock.RealClock{})()
				if tc.synced != never {
					go func() {
						time.Sleep(tc.synced)
						objects.mu.Lock()
						defer objects.mu.Unlock()
						objects.inStep[pods] = start.Add(tc.synced)
					}()
				}
				time.Sleep(tc.asked)
				asked := time.Now()
				h.settle(t.Context(), pods)
				if got := time.Since(asked); got < tc.want || got > tc.want+settleEvery {
					t.Errorf("held for %s, want %s", got, tc.want)
				}
				synctest.Wait()
				time.Sleep(time.Minute)
			})
		})
	}
}

// TestNoWayOutIsNoReasonToAsk: what the node can answer itself is not asked for over a link
// that is not there.
func TestNoWayOutIsNoReasonToAsk(t *testing.T) {
	up := false
	h := &Handler{
		Log: logr.Discard(), Objects: newStore(), Upstream: &link{reach: Undecided},
		FreshnessWait: func() time.Duration { return time.Minute },
		Uplink:        func() (time.Time, bool) { return time.Now(), up },
	}
	defer New(h, clock.RealClock{})()
	if got := h.reach(); got != CutOff {
		t.Errorf("without a way out the API server is %v, want cut off", got)
	}
	up = true
	if got := h.reach(); got != Undecided {
		t.Errorf("with one that nothing was heard over yet it is %v, want undecided", got)
	}
}
