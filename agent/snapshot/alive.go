package snapshot

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"rekindle.edge/agent/boot"
)

// The sign of life is overwritten in place, so that a minute costs one page of flash and
// no metadata: bbolt would write four. A torn write fails its checksum and is no sign.
const (
	aliveName = "alive"
	aliveSize = 256
)

// PutAlive keeps a sign of life in dir.
func PutAlive(dir string, alive boot.Alive) error {
	value, err := seal(alive)
	if err != nil {
		return err
	}
	if len(value) > aliveSize-1 {
		return fmt.Errorf("sign of life has %d bytes, more than %d", len(value), aliveSize-1)
	}
	record := make([]byte, aliveSize)
	record[0] = byte(len(value))
	copy(record[1:], value)
	file, err := os.OpenFile(filepath.Join(dir, aliveName), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("sign of life: %w", err)
	}
	defer file.Close()
	if _, err := file.WriteAt(record, 0); err != nil {
		return fmt.Errorf("sign of life: %w", err)
	}
	if err := unix.Fdatasync(int(file.Fd())); err != nil {
		return fmt.Errorf("sign of life: %w", err)
	}
	return nil
}

// LastAlive is the last sign of life in dir, nil if there is none that can be read.
func LastAlive(dir string) (*boot.Alive, error) {
	file, err := os.Open(filepath.Join(dir, aliveName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("sign of life: %w", err)
	}
	defer file.Close()
	record := make([]byte, aliveSize)
	if _, err := io.ReadFull(file, record); err != nil {
		return nil, fmt.Errorf("sign of life: %w", err)
	}
	var alive boot.Alive
	if err := open(record[1:1+min(int(record[0]), aliveSize-1)], &alive); err != nil {
		return nil, fmt.Errorf("sign of life: %w", err)
	}
	return &alive, nil
}
