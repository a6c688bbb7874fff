// Package uplink knows since when the node has a way out: a route towards the API server
// over an interface that has carrier. A cable that is plugged in, a modem that registers or
// a DHCP server may take seconds that no answer of the API server's could be expected in.
package uplink

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// lookEvery is the pace of looking for a way out until there is one.
const lookEvery = 100 * time.Millisecond

// Watch waits for the way out. It looks until there is one, and then never again: what
// becomes of it later shows in the answers.
type Watch struct {
	probe func() error
	clock clock.WithTicker

	mu sync.Mutex
	up time.Time
}

// New makes a watch that asks probe, which returns nil when there is a way out, and has it
// look once: a request that comes before Run must not find that there is none.
func New(probe func() error, clock clock.WithTicker) *Watch {
	w := &Watch{probe: probe, clock: clock}
	w.look()
	return w
}

// look says whether there is a way out, or was one.
func (w *Watch) look() bool {
	if _, ok := w.Since(); ok {
		return true
	}
	if w.probe() != nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.up = w.clock.Now()
	return true
}

// Since is when the way out was first seen, false while there is none.
func (w *Watch) Since() (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.up, !w.up.IsZero()
}

// Run looks until there is a way out or ctx ends, and calls found in the first case.
func (w *Watch) Run(ctx context.Context, found func()) {
	ticker := w.clock.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		if w.look() {
			found()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}
