package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// LoadJSON reads a file of the agent's own. There being none is no error; one that cannot be read names the file.
func LoadJSON(path string, into any) (found bool, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	return true, nil
}

// SaveJSON replaces a file as a whole, for root alone, and makes its directory if need be.
func SaveJSON(path string, what any) error {
	data, err := json.Marshal(what)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return WriteFile(path, data, 0o600)
}
