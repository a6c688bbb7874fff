package report

import (
	"math/rand/v2"
	"time"
)

// pace says how long the next write waits, whatever asks for it.
type pace struct {
	// notBefore is when the next write may be.
	notBefore time.Time
	// since is the beginning of the answers that were last seen, spread the random time
	// that their first write was given.
	since, spread time.Time
}

// wait is how long a write must wait. An API server that has begun to answer is written to
// within the jitter, also if a failure before it asked for a longer pause. A link that comes
// and goes does not put off a write that waits already.
func (p *pace) wait(now, since time.Time, jitter time.Duration) time.Duration {
	if !since.IsZero() && !since.Equal(p.since) {
		p.since = since
		if jitter > 0 && !now.Before(p.spread) {
			p.spread = now.Add(rand.N(jitter))
		}
		p.notBefore = p.spread
	}
	return p.notBefore.Sub(now)
}

// hold keeps writes back for a pause, and returns it.
func (p *pace) hold(now time.Time, pause time.Duration) time.Duration {
	p.notBefore = now.Add(pause)
	return pause
}
