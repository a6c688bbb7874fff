package access

import (
	"encoding/binary"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// kept is how many allowed answers outlive a restart.
	kept = 4096
	// kind of what is kept in the store.
	kind = "access"
)

// Store keeps values across restarts.
type Store interface {
	Remember(kind, key string, value []byte)
	Remembered(kind string) map[string][]byte
}

// Memory is what the API server has answered. Allowed answers are kept; of refusals only
// the recent ones, in memory.
type Memory struct {
	store Store
	clock clock.PassiveClock

	mu      sync.Mutex
	allowed map[string]time.Time // when it was answered
	recents map[string]answered
}

type answered struct {
	allowed bool
	until   time.Time
}

// NewMemory reads what was kept.
func NewMemory(store Store, clock clock.PassiveClock) *Memory {
	m := &Memory{store: store, clock: clock, allowed: map[string]time.Time{}, recents: map[string]answered{}}
	for key, value := range store.Remembered(kind) {
		if len(value) == 8 {
			m.allowed[key] = time.Unix(int64(binary.BigEndian.Uint64(value)), 0)
		}
	}
	return m
}

func (m *Memory) recent(q question) (allowed, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, ok := m.recents[q.key()]
	return a.allowed, ok && m.clock.Now().Before(a.until)
}

func (m *Memory) remembers(q question) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.allowed[q.key()]
	return ok
}

func (m *Memory) learn(q question, allowed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key, now := q.key(), m.clock.Now()
	if len(m.recents) >= kept {
		clear(m.recents)
	}
	m.recents[key] = answered{allowed, now.Add(fresh(allowed))}
	_, known := m.allowed[key]
	switch {
	case allowed:
		m.allowed[key] = now
		// A day's resolution is enough to tell the oldest, and spares the disk.
		if !known || len(m.allowed) > kept {
			m.store.Remember(kind, key, binary.BigEndian.AppendUint64(nil, uint64(now.Unix())))
		}
	case known:
		delete(m.allowed, key)
		m.store.Remember(kind, key, nil)
	}
	for len(m.allowed) > kept {
		m.forgetOldest()
	}
}

func (m *Memory) forgetOldest() {
	oldest, at := "", time.Time{}
	for key, t := range m.allowed {
		if oldest == "" || t.Before(at) {
			oldest, at = key, t
		}
	}
	delete(m.allowed, oldest)
	m.store.Remember(kind, oldest, nil)
}
