package source

import (
	"sync"
	"time"

	"rekindle.edge/agent/host"
)

// stepTolerance is how far the two clocks may drift apart without a step of the wall
// clock: NTP slews by 0.5 ms a second at most.
const stepTolerance = 100 * time.Millisecond

// Wall turns wall-clock times that others stamped in this boot into time since kernel
// start, as long as the wall clock was not stepped in between.
type Wall struct {
	clock host.Clock

	mu sync.Mutex
	// kernelStart is the wall time of kernel start as of the last reading.
	kernelStart time.Time
	// stepped is when a step was last noticed, as time since kernel start.
	stepped time.Duration
}

// NewWall begins to watch the clock.
func NewWall(clock host.Clock) *Wall {
	return &Wall{clock: clock, kernelStart: clock.Wall().Add(-clock.Boot())}
}

// Convert gives the time since kernel start of a wall-clock time, and whether it can be
// trusted: it is not in the future and the clock was not stepped since.
func (w *Wall) Convert(wall time.Time) (time.Duration, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Boot()
	kernelStart := w.clock.Wall().Add(-now)
	if moved := kernelStart.Sub(w.kernelStart).Abs(); moved > stepTolerance {
		w.kernelStart, w.stepped = kernelStart, now
	}
	at := wall.Sub(kernelStart)
	return at, at > w.stepped && at <= now
}
