package durable

import (
	"errors"
	"maps"
	"time"
)

// schedule flushes after a pause, unless that is to happen earlier. m.mu is held.
func (m *Map) schedule(pause time.Duration) {
	due := time.Now().Add(pause)
	if m.closed || !m.due.IsZero() && m.due.Before(due) {
		return
	}
	m.due = due
	if m.timer == nil {
		m.timer = time.AfterFunc(pause, m.background)
		return
	}
	m.timer.Reset(pause)
}

func (m *Map) background() {
	m.committing.Lock()
	defer m.committing.Unlock()
	m.mu.Lock()
	closed := m.closed
	m.mu.Unlock()
	if !closed {
		// A failure is kept as the map's problem, and tried again.
		_ = m.flush()
	}
}

// flush brings all changes to the file. m.committing is held.
func (m *Map) flush() error {
	m.mu.Lock()
	if m.problem != nil && time.Since(m.failed) < retryEvery/2 {
		// A disk that takes nothing is not asked for every change.
		m.schedule(retryEvery)
		defer m.mu.Unlock()
		return m.problem
	}
	number, dirty := m.written, m.dirty
	m.dirty = map[Record]bool{}
	m.due = time.Time{}
	changes := make([]Change, 0, len(dirty))
	for record := range dirty {
		changes = append(changes, Change{record, m.records[record]})
	}
	m.mu.Unlock()

	err := m.commit(changes)

	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		m.committed = number
		if m.problem != nil {
			m.log.Info("Store can be written again")
		}
		m.problem = nil
		return nil
	}
	maps.Copy(m.dirty, dirty)
	if m.problem == nil {
		m.log.Error(err, "Store cannot be written, going on in memory and trying again")
	}
	m.problem, m.failed = err, time.Now()
	m.schedule(retryEvery)
	return err
}

// commit writes changes to the file, or all there is to a new one.
func (m *Map) commit(changes []Change) error {
	if m.newer != nil {
		return m.newer
	}
	if m.beforeWrite != nil {
		if err := m.beforeWrite(); err != nil {
			return err
		}
	}
	if m.file != nil && len(changes) > 0 {
		err := m.file.commit(changes)
		switch {
		case err == nil || isFull(err):
			return err
		case errors.Is(err, ErrDamaged):
			// Not closed: after a fault bbolt may hold its locks for ever.
			m.log.Error(err, "Store is damaged, writing a new one from memory", "path", m.path())
			m.damaged = true
		default:
			// What is in the file after a failed sync, nobody knows.
			m.log.Error(err, "Store has failed, writing a new one from memory", "path", m.path())
			_ = m.file.close()
		}
		m.file = nil
	}
	if m.file != nil {
		return nil
	}
	return m.attach()
}
