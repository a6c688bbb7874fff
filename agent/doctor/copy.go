package doctor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Copy copies the store in dir to a directory that root alone can read, below parent, and
// gives what removes it. The store itself is not opened: its file belongs to the agent, and
// a damaged one is for the agent to deal with.
func Copy(dir, parent string) (string, func(), error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", nil, fmt.Errorf("the agent's store: %w; is the agent installed, and is this run by root?", err)
	}
	to, err := os.MkdirTemp(parent, "rekindle-doctor-")
	if err != nil {
		return "", nil, err
	}
	remove := func() { _ = os.RemoveAll(to) }
	for _, entry := range entries {
		if !entry.Type().IsRegular() || strings.Contains(entry.Name(), ".damaged-") {
			continue
		}
		if err := copyFile(filepath.Join(dir, entry.Name()), filepath.Join(to, entry.Name())); err != nil {
			remove()
			return "", nil, fmt.Errorf("copying the agent's store: %w", err)
		}
	}
	return to, remove, nil
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
