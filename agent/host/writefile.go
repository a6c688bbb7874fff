package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// WriteFile replaces a file so that after a power cut it holds the old content or the new
// one, never a part: a temporary file beside it, synced, renamed, the directory synced.
func WriteFile(path string, data []byte, mode os.FileMode) error {
	dir := filepath.Dir(path)
	file, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Chmod(mode), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", path, err), os.Remove(file.Name()))
	}
	return SyncDir(dir)
}

// SyncDir makes the names in a directory durable.
func SyncDir(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("syncing the directory: %w", err)
	}
	return errors.Join(file.Sync(), file.Close())
}
