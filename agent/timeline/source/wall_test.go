package source

import (
	"sync"
	"testing"
	"time"
)

// twoClocks are moved by hand.
type twoClocks struct {
	mu   sync.Mutex
	boot time.Duration
	wall time.Time
}

func (c *twoClocks) Boot() time.Duration { c.mu.Lock(); defer c.mu.Unlock(); return c.boot }
func (c *twoClocks) Wall() time.Time     { c.mu.Lock(); defer c.mu.Unlock(); return c.wall }

func (c *twoClocks) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.boot, c.wall = c.boot+d, c.wall.Add(d)
}

func (c *twoClocks) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = c.wall.Add(d)
}

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func TestWallConvert(t *testing.T) {
	const years = 10 * 365 * 24 * time.Hour
	cases := map[string]struct {
		// step and slew move the wall clock, 10 s after kernel start.
		step   time.Duration
		stamp  time.Time
		want   time.Duration
		wantOK bool
	}{
		"a stamp of this boot":                            {stamp: noon.Add(5 * time.Second), want: 5 * time.Second, wantOK: true},
		"a stamp from the future":                         {stamp: noon.Add(time.Hour)},
		"a stamp of the boot before":                      {stamp: noon.Add(-time.Second)},
		"a clock that is slewed a little":                 {step: 50 * time.Millisecond, stamp: noon.Add(5 * time.Second), want: 4950 * time.Millisecond, wantOK: true},
		"a stamp from before the clock was set forward":   {step: years, stamp: noon.Add(5 * time.Second)},
		"a stamp from before the clock was set back":      {step: -years, stamp: noon.Add(5 * time.Second)},
		"a stamp that seems to be from before the step":   {step: years, stamp: noon.Add(years + 9*time.Second)},
		"a stamp from after the clock was set, years on":  {step: years, stamp: noon.Add(years + 15*time.Second), want: 15 * time.Second, wantOK: true},
		"a stamp from after the clock was set back years": {step: -years, stamp: noon.Add(-years + 15*time.Second), want: 15 * time.Second, wantOK: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			clocks := &twoClocks{wall: noon}
			wall := NewWall(clocks)
			clocks.pass(10 * time.Second)
			clocks.step(tc.step)
			wall.Convert(clocks.Wall())
			clocks.pass(10 * time.Second)
			got, ok := wall.Convert(tc.stamp)
			if ok != tc.wantOK || (ok && got != tc.want) {
				t.Errorf("got %v, %v, want %v, %v", got, ok, tc.want, tc.wantOK)
			}
		})
	}
}
