// Package durable keeps records in memory and, durably, in one bbolt file. What is loaded
// is proven whole: every record has a checksum over its place and its value, and the file
// one over all of them, so that a page that was lost or changed cannot pass as a smaller
// content. While the disk is full, read-only or broken, the records in memory go on, and
// are written when it takes them again.
package durable

import (
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// Record names a record.
type Record struct{ Bucket, Key string }

// Change replaces a record's value. A nil value deletes the record.
type Change struct {
	Record
	Value []byte
}

// When says how soon a change must be on the disk.
type When int

// From the most to the least urgent.
const (
	// Now: before Write returns. What waits with less urgency is written with it.
	Now When = iota
	// Soon: within a second.
	Soon
	// Slow: within ten minutes.
	Slow
	// Lazy: together with the next change that is not lazy, and when the map is closed.
	Lazy
)

const (
	soon = time.Second
	slow = 10 * time.Minute
	// retryEvery is the pause after a write that failed.
	retryEvery = 2 * time.Second
)

// Map is the records. Its methods are safe for concurrent use. Values are shared: nobody
// may change one.
type Map struct {
	dir         string
	log         logr.Logger
	checker     *Checker
	beforeWrite func() error

	mu      sync.Mutex
	records map[Record][]byte
	// dirty are the records that differ from the file's.
	dirty map[Record]bool
	// written counts calls of Write, so that one commit can answer several.
	written uint64
	// changed counts those that were urgent.
	changed uint64
	due     time.Time
	timer   *time.Timer
	problem error
	// failed is when the problem was last seen.
	failed time.Time
	closed bool

	// committing is held while the file is written; what follows belongs to it.
	committing sync.Mutex
	committed  uint64
	// file is nil while there is none that can be written.
	file *file
	// damaged says that what is at the file's path is to be kept for inspection.
	damaged bool
	// newer is why the file may not be touched.
	newer error
	// sealing is held while a generation is sealed.
	sealing sync.Mutex
}

// Each calls f for every record of a bucket, in no order. Write must not be called in f.
func (m *Map) Each(bucket string, f func(key string, value []byte) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for record, value := range m.records {
		if record.Bucket == bucket {
			if err := f(record.Key, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// Get is a record's value, nil if there is none.
func (m *Map) Get(bucket, key string) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.records[Record{bucket, key}]
}

// Problem says why changes do not reach the disk; nil: they do.
func (m *Map) Problem() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.problem
}

// Write changes records, all of them or, after a power cut, none. The changes hold in
// memory in any case: an error, only possible with Now, says that they are not on the disk
// yet. They are tried again until they are.
func (m *Map) Write(when When, changes ...Change) error {
	m.mu.Lock()
	for _, change := range changes {
		if change.Value == nil {
			delete(m.records, change.Record)
		} else {
			m.records[change.Record] = change.Value
		}
		m.dirty[change.Record] = true
	}
	m.written++
	number := m.written
	if when <= Soon && len(changes) > 0 {
		m.changed++
	}
	switch when {
	case Soon:
		m.schedule(soon)
	case Slow:
		m.schedule(slow)
	}
	m.mu.Unlock()
	if when != Now {
		return nil
	}
	m.committing.Lock()
	defer m.committing.Unlock()
	if m.committed >= number {
		return nil
	}
	return m.flush()
}

// Close writes what is left and closes the file.
func (m *Map) Close() error {
	m.committing.Lock()
	defer m.committing.Unlock()
	m.mu.Lock()
	if m.timer != nil {
		m.timer.Stop()
	}
	again := m.closed
	m.closed = true
	left := len(m.dirty) > 0
	m.mu.Unlock()
	if again {
		return nil
	}
	var err error
	if left {
		err = m.flush()
	}
	if m.file != nil {
		err = errors.Join(err, m.file.close())
		m.file = nil
	}
	return err
}

func (m *Map) path() string { return filepath.Join(m.dir, FileName) }

// Due says whether changes are on their way to the disk, without the lazy ones.
func (m *Map) Due() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.due.IsZero()
}

// Changed counts the changes that were to be written now or soon.
func (m *Map) Changed() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}
