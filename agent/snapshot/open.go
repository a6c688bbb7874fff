package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

const (
	// lockTimeout bounds the wait for another process to let go of the file.
	lockTimeout = time.Second
	// keptDamaged is how many damaged files are kept for inspection.
	keptDamaged = 3
	damagedMark = ".damaged-"
)

// ErrDamaged: the file, or a page of it, is not what was written.
var ErrDamaged = errors.New("the store is damaged")

// Open opens the store in dir and makes what is missing. A damaged file is moved aside and
// a new one begun: the node's history is lost, the node is not. Errors are of the kind
// that may go away: no space, no permission, another process that holds the file.
func Open(dir string, log logr.Logger) (*Store, error) {
	if err := ensureDir(dir); err != nil {
		return nil, err
	}
	path := dbPath(dir)
	store, err := openFile(path)
	if !errors.Is(err, ErrDamaged) {
		return store, err
	}
	aside, moveErr := moveAside(path)
	if moveErr != nil {
		return nil, errors.Join(err, moveErr)
	}
	log.Error(err, "Store is damaged, beginning a new one: records of earlier restarts are lost, the next restart is measured again", "kept", aside)
	return openFile(path)
}

// Discard moves the store in dir aside: it turned out to be damaged while in use.
func Discard(dir string) error {
	_, err := moveAside(dbPath(dir))
	return err
}

// openFile opens the file and reads all of it, so that damage shows now and not later.
func openFile(path string) (*Store, error) {
	var store *Store
	err := guard(func() error {
		db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: lockTimeout})
		if err != nil {
			return openError(path, err)
		}
		store = &Store{db: db}
		if err := initialise(db); err != nil {
			return err
		}
		// bbolt syncs the file, not the directory entry of a new one.
		return syncDir(filepath.Dir(path))
	})
	if err == nil {
		_, err = store.Load()
		if err != nil && !errors.Is(err, ErrDamaged) {
			// Nothing but a value that cannot be read fails here.
			err = fmt.Errorf("%w: %w", ErrDamaged, err)
		}
	} else if errors.Is(err, errChecksum) {
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err == nil {
		return store, nil
	}
	if store != nil {
		// Closing may fault as well.
		_ = guard(store.db.Close)
	}
	return nil, fmt.Errorf("opening %s: %w", path, err)
}

// openError tells damage from what may go away.
func openError(path string, err error) error {
	var pathError *fs.PathError
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("another process holds %s: is a second agent running? %w", path, err)
	case errors.As(err, &pathError):
		return err
	}
	if info, statErr := os.Stat(path); statErr == nil && info.Size() > 0 {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// guard turns a panic, and a fault on a mapped page, into ErrDamaged.
func guard(f func() error) (err error) {
	before := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(before)
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, r)
		}
	}()
	return f()
}

func syncDir(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer file.Close()
	return file.Sync()
}

// moveAside renames a damaged file and drops the oldest of those kept.
func moveAside(path string) (string, error) {
	old, err := filepath.Glob(path + damagedMark + "*")
	if err != nil {
		return "", err
	}
	number := func(name string) int {
		n, _ := strconv.Atoi(name[strings.LastIndex(name, damagedMark)+len(damagedMark):])
		return n
	}
	slices.SortFunc(old, func(a, b string) int { return number(a) - number(b) })
	next := 1
	if len(old) > 0 {
		next = number(old[len(old)-1]) + 1
	}
	for ; len(old) >= keptDamaged; old = old[1:] {
		if err := os.Remove(old[0]); err != nil {
			return "", fmt.Errorf("dropping an old damaged store: %w", err)
		}
	}
	aside := path + damagedMark + strconv.Itoa(next)
	if err := os.Rename(path, aside); err != nil {
		return "", fmt.Errorf("moving the damaged store aside: %w", err)
	}
	return aside, nil
}
