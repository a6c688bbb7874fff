// Package kept reads and writes what the gate knows of this boot and a restart of the agent
// must not lose: small JSON files below /run, for root alone.
package kept

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"rekindle.edge/agent/host"
)

// Load reads a file. There being none is no error; one that cannot be read names the file.
func Load(path string, into any) (found bool, err error) {
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

// Save replaces a file as a whole, and makes its directory if need be.
func Save(path string, what any) error {
	data, err := json.Marshal(what)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return host.WriteFile(path, data, 0o600)
}
