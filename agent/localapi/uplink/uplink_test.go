package uplink

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
)

func TestWatch(t *testing.T) {
	cases := map[string]struct {
		downFor time.Duration
		want    time.Duration // after the start
	}{
		"a way out that is there is seen at once":        {},
		"one that comes late is seen within a tenth":     {downFor: 20*time.Second + 30*time.Millisecond, want: 20*time.Second + 100*time.Millisecond},
		"one that comes with the next look is seen then": {downFor: lookEvery, want: lookEvery},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			start := time.Unix(1000, 0)
			clock := testclock.NewFakeClock(start)
			w := New(func() error {
				if clock.Since(start) < tc.downFor {
					return errors.New("down")
				}
				return nil
			}, clock)
			found := make(chan struct{})
			go w.Run(t.Context(), func() { close(found) })
			deadline := time.After(10 * time.Second)
			for up := false; !up; {
				select {
				case <-found:
					up = true
				case <-deadline:
					t.Fatal("never found")
				case <-time.After(100 * time.Microsecond):
					if _, ok := w.Since(); !ok && clock.HasWaiters() && clock.Since(start) < tc.want {
						clock.Step(lookEvery)
					}
				}
			}
			at, ok := w.Since()
			if got := at.Sub(start); !ok || got != tc.want {
				t.Errorf("since %s (%v), want %s", got, ok, tc.want)
			}
		})
	}
}

func TestWatchHasLookedBeforeItRuns(t *testing.T) {
	now := time.Unix(1000, 0)
	w := New(func() error { return nil }, testclock.NewFakeClock(now))
	if at, ok := w.Since(); !ok || !at.Equal(now) {
		t.Errorf("up since %s (%v), want %s", at, ok, now)
	}
}

func TestWatchEndsWithoutAWayOut(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := New(func() error { return errors.New("down") }, testclock.NewFakeClock(time.Unix(0, 0)))
	w.Run(ctx, func() { t.Error("found") })
	if at, ok := w.Since(); ok {
		t.Errorf("up since %s", at)
	}
}

func TestRoute(t *testing.T) {
	cases := map[string]struct {
		server string
		want   bool
	}{
		"the node itself can always be reached": {server: "https://127.0.0.1:6443", want: true},
		"an address that leads nowhere":         {server: "https://[fe80::1]:6443"},
		"a server that is not known yet":        {},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var server *url.URL
			if tc.server != "" {
				var err error
				if server, err = url.Parse(tc.server); err != nil {
					t.Fatal(err)
				}
			}
			if err := Route(func() *url.URL { return server })(); (err == nil) != tc.want {
				t.Errorf("way out %v, want %v: %v", err == nil, tc.want, err)
			}
		})
	}
}
