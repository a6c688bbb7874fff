package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"rekindle.edge/agent/boot"
)

// The sign of life is overwritten in place, so that a minute costs one page of flash and
// no metadata: bbolt would write four. A torn write fails its checksum and is no sign. The
// rest of the page says when each collection was last in step, which nothing else writes
// while nothing changes.
const (
	aliveName = "alive"
	aliveSize = 256
	alivePage = 4096
)

// PutAlive keeps a sign of life, and when the collections were last in step.
func (s *Store) PutAlive(alive boot.Alive) error {
	value, err := seal(alive)
	if err != nil {
		return err
	}
	if len(value) > aliveSize-1 {
		return fmt.Errorf("sign of life has %d bytes, more than %d", len(value), aliveSize-1)
	}
	record := make([]byte, alivePage)
	record[0] = byte(len(value))
	copy(record[1:], value)
	inStep, err := seal(s.objects.inStep())
	if err != nil {
		return err
	}
	// More collections than a page has room for are no reason to go without the sign.
	if rest := record[aliveSize:]; len(inStep) <= len(rest)-2 {
		binary.BigEndian.PutUint16(rest, uint16(len(inStep)))
		copy(rest[2:], inStep)
	}
	file, err := os.OpenFile(filepath.Join(s.dir, aliveName), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("sign of life: %w", err)
	}
	if _, err = file.WriteAt(record, 0); err == nil {
		err = unix.Fdatasync(int(file.Fd()))
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("sign of life: %w", err)
	}
	return nil
}

// LastAlive is the last sign of life in dir, nil if there is none that can be read.
func LastAlive(dir string) (*boot.Alive, error) {
	record, err := readAlive(dir, 0, aliveSize)
	if record == nil || err != nil {
		return nil, err
	}
	var alive boot.Alive
	if err := open(record[1:1+min(int(record[0]), aliveSize-1)], &alive); err != nil {
		return nil, fmt.Errorf("sign of life: %w", err)
	}
	return &alive, nil
}

// lastInStep is when collections were in step at the last sign of life, by their keys.
func lastInStep(dir string) map[string]int64 {
	record, err := readAlive(dir, aliveSize, alivePage-aliveSize)
	if record == nil || err != nil {
		return nil
	}
	size := min(int(binary.BigEndian.Uint16(record)), len(record)-2)
	var inStep map[string]int64
	if open(record[2:2+size], &inStep) != nil {
		return nil
	}
	return inStep
}

func readAlive(dir string, offset, size int64) ([]byte, error) {
	file, err := os.Open(filepath.Join(dir, aliveName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("sign of life: %w", err)
	}
	defer func() { _ = file.Close() }()
	record := make([]byte, size)
	if _, err := file.ReadAt(record, offset); err != nil {
		return nil, fmt.Errorf("sign of life: %w", err)
	}
	return record, nil
}

// inStep is when the collections were last in step, in seconds, by their keys.
func (o *Objects) inStep() map[string]int64 {
	o.mu.RLock()
	defer o.mu.RUnlock()
	found := map[string]int64{}
	for resource, c := range o.state.collections {
		if !c.inStep.IsZero() {
			found[resourceKey(resource)] = c.inStep.Unix()
		}
	}
	return found
}

// adoptInStep takes what the page says where it is later than the store, unless that is an
// older content than the page is of.
func (o *Objects) adoptInStep(inStep map[string]int64) {
	if o.state.verdict.doubt != "" {
		return
	}
	for key, seconds := range inStep {
		resource, err := parseResource(key)
		if err != nil {
			continue
		}
		if t := time.Unix(seconds, 0); o.state.collections[resource] != nil && t.After(o.state.collections[resource].inStep) {
			o.state.collections[resource].inStep = t
		}
	}
}
