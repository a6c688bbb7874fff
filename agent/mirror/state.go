package mirror

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"rekindle.edge/agent/snapshot"
)

// scopeState is how one follower stands. It is guarded by the mirror's lock.
type scopeState struct {
	scope snapshot.Scope
	// warm is set for an entry of the policy's warm list.
	warm bool
	// optional is set for what a server need not have or allow.
	optional bool
	// open says that a watch runs, on a list that was taken as a whole.
	open, listed, held bool
	// large is why an entry of the warm list is left out; empty: it is not.
	large string
	// refused is what the server said when it did not let the node read; empty: it does.
	refused      string
	refusedSince time.Time
}

func (s *scopeState) watching(m *Mirror) {
	m.mu.Lock()
	s.open = true
	m.mu.Unlock()
	// Who waits for the freshest list of a boot waits for this.
	m.markInStep(s.scope.Resource)
	m.tick()
}

func (s *scopeState) synced(m *Mirror, held bool) {
	m.mu.Lock()
	s.listed, s.held, s.refused, s.large = true, held, "", ""
	m.heard = m.wall()
	m.mu.Unlock()
	m.tick()
}

// left is told how a watch, or the attempt at one, has ended.
func (s *scopeState) left(m *Mirror, err error) {
	m.mu.Lock()
	s.open = s.open && err == nil
	var large tooLargeError
	switch {
	case errors.As(err, &large):
		s.large, s.listed = large.Error(), false
	case s.optional:
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err):
		if s.refused == "" {
			s.refusedSince = m.wall()
		}
		s.refused = err.Error()
	}
	m.mu.Unlock()
	m.tick()
}
