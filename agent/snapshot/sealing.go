package snapshot

import (
	"time"

	"github.com/go-logr/logr"
)

// When the content is sealed. A sealed copy costs the flash as much as the whole content,
// so there are few: none while nothing changes.
const (
	// settled is how long nothing has changed before a copy is taken: a change of pods
	// comes with the objects that they need.
	settled = 10 * time.Second
	// policyEvery, podsEvery and restEvery are the least time between two copies when the
	// node's policy has changed, when pods have come or gone, or only other things have
	// changed. A node that goes back to a generation goes back to its policy.
	policyEvery = time.Minute
	podsEvery   = 10 * time.Minute
	restEvery   = time.Hour

	defaultRetain = 2
	maxRetain     = 5
)

// changes are counts: of all changes of the content, of those at which pods came or went, and
// of those of the policy.
type changes struct{ all, pods, policy uint64 }

func (s *Store) changes() changes {
	return changes{all: s.durable.Changed(), pods: s.objects.podChanges.Load(), policy: s.policyChanges.Load()}
}

// sealing decides when to seal. It is not safe for concurrent use.
type sealing struct {
	// at is when the last copy was taken, and of which content; zero: never in this run.
	at   time.Time
	last changes
	// seen is the latest content, and since when it is.
	seen  uint64
	since time.Time
}

// due says whether to seal at now.
func (s *sealing) due(now time.Time, c changes) bool {
	if c.all != s.seen || s.since.IsZero() {
		s.seen, s.since = c.all, now
	}
	switch {
	case now.Sub(s.since) < settled || c.all == s.last.all && !s.at.IsZero():
		return false
	case s.at.IsZero():
		return true
	case c.policy != s.last.policy:
		return now.Sub(s.at) >= policyEvery
	case c.pods != s.last.pods:
		return now.Sub(s.at) >= podsEvery
	}
	return now.Sub(s.at) >= restEvery
}

func (s *sealing) done(now time.Time, c changes) { s.at, s.last = now, c }

// sealLoop seals until the store is closed.
func (s *Store) sealLoop(log logr.Logger) {
	defer close(s.sealed)
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	var policy sealing
	if !s.durable.HasSealed() {
		log.V(1).Info("No sealed generation yet")
	} else {
		// What is loaded was sealed before, or will be with the next change.
		policy.done(time.Now(), s.changes())
	}
	told := ""
	for {
		select {
		case <-s.closing:
			return
		case <-ticker.C:
		}
		changed := s.changes()
		if trusted, _ := s.objects.Trusted(); !trusted || s.objects.doubtful() || !policy.due(time.Now(), changed) {
			continue
		}
		err := s.Seal()
		if err != nil && err.Error() != told {
			told = err.Error()
			log.Error(err, "Generation cannot be sealed, trying again with the next change")
		}
		if err == nil {
			told = ""
			log.V(1).Info("Generation is sealed")
		}
		policy.done(time.Now(), changed)
	}
}

// Seal makes a sealed copy of the content now.
func (s *Store) Seal() error { return s.durable.Seal(int(s.retain.Load())) }

// SetRetain sets how many sealed generations are kept: 1 to 5, 0 for the default of 2.
func (s *Store) SetRetain(generations int) {
	if generations == 0 {
		generations = defaultRetain
	}
	s.retain.Store(int32(min(max(generations, 1), maxRetain)))
}
