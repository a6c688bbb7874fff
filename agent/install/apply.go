package install

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"rekindle.edge/agent/host"
)

// differing are the files that are not on the node as they should be.
func differing(root string, files []file) ([]file, error) {
	var changed []file
	for _, f := range files {
		same, err := f.isAt(filepath.Join(root, f.path))
		if err != nil {
			return nil, err
		}
		if !same {
			changed = append(changed, f)
		}
	}
	return changed, nil
}

func (f file) isAt(path string) (bool, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if f.link != "" {
		target, err := os.Readlink(path)
		return err == nil && target == f.link, nil
	}
	if !info.Mode().IsRegular() || info.Mode().Perm() != f.mode {
		return false, nil
	}
	data, err := os.ReadFile(path)
	return bytes.Equal(data, f.data), err
}

// write puts a file in place. A program that runs from the old one goes on with it.
func (f file) write(root string) error {
	path := filepath.Join(root, f.path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if f.link == "" {
		return host.WriteFile(path, f.data, f.mode)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(f.link, path); err != nil {
		return fmt.Errorf("enabling a unit: %w", err)
	}
	return host.SyncDir(filepath.Dir(path))
}
