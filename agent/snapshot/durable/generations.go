package durable

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Sealed generations are copies that nobody writes to any more. The name has the digest,
// so that the copy and what proves it appear in one rename.

const (
	sealedPrefix = "generation-"
	sealedSuffix = ".db"
)

// Generation is a sealed copy.
type Generation struct {
	Number uint64
	Sealed time.Time
	Bytes  int64

	path, digest string
}

// Generations are the sealed copies in dir, newest first.
func Generations(dir string) ([]Generation, error) {
	paths, err := filepath.Glob(filepath.Join(dir, sealedPrefix+"*"+sealedSuffix))
	if err != nil {
		return nil, err
	}
	var found []Generation
	for _, path := range paths {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), sealedPrefix), sealedSuffix)
		number, digest, _ := strings.Cut(name, "-")
		n, err := strconv.ParseUint(number, 10, 64)
		if err != nil || len(digest) != 2*sha256.Size {
			continue // not ours
		}
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		found = append(found, Generation{Number: n, Sealed: info.ModTime(), Bytes: info.Size(), path: path, digest: digest})
	}
	slices.SortFunc(found, func(a, b Generation) int { return int(int64(b.Number) - int64(a.Number)) })
	return found, nil
}

// verify proves that a copy is what was sealed.
func (g Generation) verify(checker *Checker) error {
	digest, err := digestOf(g.path)
	if err != nil {
		return err
	}
	if digest != g.digest {
		return fmt.Errorf("%w: generation %d does not match its digest", ErrDamaged, g.Number)
	}
	return checker.check(g.path)
}

func digestOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// Seal makes a sealed copy of what is in memory, checks it, and drops copies beyond the
// number to retain.
func (m *Map) Seal(retain int) error {
	m.sealing.Lock()
	defer m.sealing.Unlock()
	m.mu.Lock()
	records := maps.Clone(m.records)
	closed, newer := m.closed, m.newer
	m.mu.Unlock()
	if newer != nil || closed {
		return errors.Join(newer, errClosed(closed))
	}
	old, err := Generations(m.dir)
	if err != nil {
		return err
	}
	number := uint64(1)
	if len(old) > 0 {
		number = old[0].Number + 1
	}
	// Room first: a full disk would keep the older copies for ever.
	if err := drop(old, retain); err != nil {
		return err
	}
	if m.beforeWrite != nil {
		if err := m.beforeWrite(); err != nil {
			return err
		}
	}
	temporary := filepath.Join(m.dir, "sealing"+newMark)
	f, err := create(temporary, records)
	if err != nil {
		return fmt.Errorf("sealing generation %d: %w", number, err)
	}
	err = f.close()
	if err == nil {
		err = m.checker.check(temporary)
	}
	var digest string
	if err == nil {
		digest, err = digestOf(temporary)
	}
	if err == nil {
		err = os.Rename(temporary, filepath.Join(m.dir, fmt.Sprintf("%s%08d-%s%s", sealedPrefix, number, digest, sealedSuffix)))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("sealing generation %d: %w", number, err), removeIfThere(temporary))
	}
	if err := syncDir(m.dir); err != nil {
		return err
	}
	if old, err = Generations(m.dir); err != nil {
		return err
	}
	return drop(old, retain)
}

func errClosed(closed bool) error {
	if closed {
		return errors.New("the store is closed")
	}
	return nil
}

// drop removes the oldest copies beyond the number to retain.
func drop(generations []Generation, retain int) error {
	var err error
	for _, g := range generations[min(max(retain, 1), len(generations)):] {
		err = errors.Join(err, os.Remove(g.path))
	}
	return err
}

// restore loads the newest sealed copy that is good.
func (m *Map) restore() (Generation, error) {
	generations, err := Generations(m.dir)
	if err != nil {
		return Generation{}, err
	}
	for _, g := range generations {
		err := g.verify(m.checker)
		if err == nil {
			err = m.loadFrom(g.path)
		}
		if err == nil {
			return g, nil
		}
		m.log.Error(err, "Sealed generation cannot be used", "path", g.path)
	}
	return Generation{}, fmt.Errorf("none of %d sealed generations can be used", len(generations))
}

// loadFrom reads a file that has been checked, and leaves it closed.
func (m *Map) loadFrom(path string) error {
	return guard(func() error {
		db, err := openDB(path, true)
		if err != nil {
			return err
		}
		records, _, err := load(db)
		if err != nil {
			return errors.Join(err, guard(db.Close))
		}
		m.records = records
		return db.Close()
	})
}

// HasSealed says whether there is a sealed copy.
func (m *Map) HasSealed() bool {
	generations, err := Generations(m.dir)
	return err == nil && len(generations) > 0
}
