package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
)

// newMark ends the name of a file that is not complete yet.
const newMark = ".new"

// Options of a map.
type Options struct {
	Log logr.Logger
	// Checker of files before they are opened; nil: within this process.
	Checker *Checker
	// BeforeWrite is called before anything is written; while it fails nothing is. May be nil.
	BeforeWrite func() error
}

// Doubt says why the content may be older than what was last written; empty: it is not.
type Doubt string

// Open loads the file in dir. In place of a damaged one it takes the newest sealed
// generation that is good, or begins anew; the damaged one is kept for inspection. An error
// is of the kind that may go away, and nothing was loaded. If the content is loaded but
// cannot be written, because the disk is full or read-only or the file is of a newer agent,
// that is the map's problem and no error.
func Open(dir string, options Options) (*Map, Doubt, error) {
	m := &Map{
		dir: dir, log: options.Log, checker: options.Checker, beforeWrite: options.BeforeWrite,
		records: map[Record][]byte{}, dirty: map[Record]bool{},
	}
	if err := ensureDir(dir); err != nil && !cannotWrite(err) {
		return nil, "", err
	}
	doubt, err := m.load()
	switch {
	case isNewer(err):
		m.log.Error(err, "Store is of a newer agent, going on in memory", "path", m.path())
		m.newer, m.problem = err, err
		return m, "", nil
	case err != nil:
		return nil, "", fmt.Errorf("opening %s: %w", m.path(), err)
	}
	return m, doubt, nil
}

// load reads the file, or what is left in its place.
func (m *Map) load() (Doubt, error) {
	_, err := os.Stat(m.path())
	switch {
	case errors.Is(err, fs.ErrNotExist) && !m.HasSealed():
		return "", nil
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("%w: it is missing", ErrDamaged)
	case err == nil && m.loadSound():
		return "", nil
	case err == nil:
		err = m.checker.check(m.path())
	}
	var doubt Doubt
	if errors.Is(err, ErrDoubtful) {
		m.log.Error(err, "Store may lack its last change", "path", m.path())
		doubt, err = Doubt(err.Error()), nil
	}
	if err == nil {
		err = m.loadNewest()
	}
	if !errors.Is(err, ErrDamaged) {
		return doubt, err
	}
	m.damaged = true
	generation, restoreErr := m.restore()
	if restoreErr != nil {
		m.log.Error(errors.Join(err, restoreErr), "Store is damaged, beginning a new one"+lookAfter, "path", m.path())
		return Doubt(fmt.Sprintf("%v; %v", err, restoreErr)), nil
	}
	m.log.Error(err, "Store is damaged, going on with a sealed generation"+lookAfter, "path", m.path(),
		"generation", generation.Number, "sealed", generation.Sealed)
	return Doubt(fmt.Sprintf("%v; generation %d of %s is used", err, generation.Number, generation.Sealed.UTC().Format(time.RFC3339))), nil
}

// lookAfter is what to do about a damaged store; the agent itself goes on.
const lookAfter = "; check the disk (kernel log, SMART), the damaged file is kept beside it"

// loadNewest reads the file itself. It stays open if it can be written as it is.
func (m *Map) loadNewest() error {
	return guard(func() error {
		readOnly := false
		db, err := openDB(m.path(), readOnly)
		if cannotWrite(err) {
			readOnly = true
			db, err = openDB(m.path(), readOnly)
		}
		if err != nil {
			return err
		}
		records, found, err := load(db)
		if err != nil {
			return errors.Join(err, guard(db.Close))
		}
		m.records = records
		if readOnly || found != version {
			// The first write makes a new file.
			return db.Close()
		}
		m.file = &file{db}
		return nil
	})
}

// attach makes m.file of what is in memory: a new file takes the place of the old one in
// one rename. m.committing is held.
func (m *Map) attach() error {
	if err := ensureDir(m.dir); err != nil {
		return err
	}
	m.mu.Lock()
	records := maps.Clone(m.records)
	m.mu.Unlock()
	temporary := m.path() + newMark
	f, err := create(temporary, records)
	if err != nil {
		return err
	}
	if m.damaged {
		kept, err := keepDamaged(m.path())
		if err != nil {
			m.log.Error(err, "Damaged store cannot be kept for inspection")
		} else {
			m.log.Info("Damaged store is kept for inspection", "path", kept)
		}
	}
	if err := os.Rename(temporary, m.path()); err != nil {
		return errors.Join(err, f.close(), os.Remove(temporary))
	}
	if err := syncDir(m.dir); err != nil {
		return errors.Join(err, f.close())
	}
	m.file, m.damaged = f, false
	return nil
}

// create makes a complete file, or none.
func create(path string, records map[Record][]byte) (*file, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	db, err := openDB(path, false)
	if err != nil {
		return nil, errors.Join(err, removeIfThere(path))
	}
	f := &file{db}
	if err := f.begin(records); err != nil {
		return nil, errors.Join(err, f.close(), removeIfThere(path))
	}
	return f, nil
}

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// cannotWrite says whether an error means that the disk takes no writes.
func cannotWrite(err error) bool {
	for _, number := range []error{unix.EROFS, unix.EACCES, unix.EPERM} {
		if errors.Is(err, number) {
			return true
		}
	}
	return isFull(err)
}

// isFull says whether an error means that there is no space; the file is sound then.
func isFull(err error) bool {
	for _, number := range []error{unix.ENOSPC, unix.EDQUOT, unix.EFBIG} {
		// bbolt loses the number on the way when it lets the file grow.
		if err != nil && (errors.Is(err, number) || strings.Contains(err.Error(), number.Error())) {
			return true
		}
	}
	return false
}

func ensureDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	if info.Mode().Perm() == 0o700 {
		return nil
	}
	// The directory may have been made by a package or by hand.
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	return nil
}

func syncDir(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
