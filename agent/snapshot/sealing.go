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
	// podsEvery and restEvery are the least time between two copies when pods have come or
	// gone, or only other things have changed.
	podsEvery = 10 * time.Minute
	restEvery = time.Hour

	defaultRetain = 2
	maxRetain     = 5
)

// sealing decides when to seal. It is not safe for concurrent use.
type sealing struct {
	// at is when the last copy was taken, and of which content; zero: never in this run.
	at      time.Time
	changed uint64
	pods    uint64
	// seen is the latest content, and since when it is.
	seen  uint64
	since time.Time
}

// due says whether to seal at now. Changed counts changes of the content, pods those at
// which pods came or went.
func (s *sealing) due(now time.Time, changed, pods uint64) bool {
	if changed != s.seen || s.since.IsZero() {
		s.seen, s.since = changed, now
	}
	switch {
	case now.Sub(s.since) < settled || changed == s.changed && !s.at.IsZero():
		return false
	case s.at.IsZero():
		return true
	case pods != s.pods:
		return now.Sub(s.at) >= podsEvery
	}
	return now.Sub(s.at) >= restEvery
}

func (s *sealing) done(now time.Time, changed, pods uint64) {
	s.at, s.changed, s.pods = now, changed, pods
}

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
		policy.done(time.Now(), s.durable.Changed(), s.objects.podChanges.Load())
	}
	told := ""
	for {
		select {
		case <-s.closing:
			return
		case <-ticker.C:
		}
		changed, pods := s.durable.Changed(), s.objects.podChanges.Load()
		if trusted, _ := s.objects.Trusted(); !trusted || s.objects.doubtful() || !policy.due(time.Now(), changed, pods) {
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
		policy.done(time.Now(), changed, pods)
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
