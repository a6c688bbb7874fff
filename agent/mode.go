package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"rekindle.edge/agent/mirror"
)

// modeWait bounds how long kubelet waits for the policy's mode, which is in the store. A
// store that is late or cannot be opened leaves kubelet wired: the node must come back.
const modeWait = time.Second

// unknownLimit bounds how long a kubelet that runs is left alone by an agent that is new and
// has not heard of a policy: the API server may be out of reach, or not know the kind.
const unknownLimit = 10 * time.Second

// mode tells whether the policy wants nothing changed on the node.
type mode struct {
	known chan struct{}
	once  sync.Once
	from  atomic.Pointer[mirror.Mirror]
	// begun is when the agent began.
	begun time.Time
	// unknown says that no policy can be known of; since is when the store was opened.
	unknown func() bool
	since   time.Time
}

func newMode() *mode { return &mode{known: make(chan struct{}), begun: time.Now()} }

// open is called with the mirror, which knows the policy as it was last stored. Unknown says
// that there is none for now because nothing was heard of any yet.
func (m *mode) open(from *mirror.Mirror, unknown func() bool) {
	m.unknown, m.since = unknown, time.Now()
	m.from.Store(from)
	m.once.Do(func() { close(m.known) })
}

// wait returns when the mode is known, or would be waited for too long.
func (m *mode) wait(ctx context.Context) {
	select {
	case <-m.known:
	case <-ctx.Done():
	case <-time.After(modeWait):
	}
}

// observe says that the mode is Observe; while it is not known it is not.
func (m *mode) observe() bool {
	from := m.from.Load()
	return from != nil && from.Observes()
}

// undecided says that the mode may turn out to be Observe: the store is not open yet, or new.
func (m *mode) undecided() bool {
	if m.from.Load() == nil {
		return time.Since(m.begun) < unknownLimit
	}
	return m.unknown() && time.Since(m.since) < unknownLimit
}
