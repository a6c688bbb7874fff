package nodefiles

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"rekindle.edge/agent/host"
)

// kept is a file as it was last seen.
type kept struct {
	Path     string `json:"path"`
	Mode     uint32 `json:"mode"`
	UID      int    `json:"uid"`
	GID      int    `json:"gid"`
	Label    string `json:"label,omitempty"` // SELinux's
	Modified int64  `json:"modified"`        // ns, compared for equality only
	Content  []byte `json:"content"`
}

// fileName of a path's copy.
func fileName(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:16])
}

// store puts a copy on the disk: a checksum, a line feed, JSON. 0600, since a file may hold
// a credential.
func store(dir string, k kept) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	data, err := json.Marshal(k)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	return host.WriteFile(filepath.Join(dir, fileName(k.Path)), append([]byte(hex.EncodeToString(sum[:])+"\n"), data...), 0o600)
}

// load is false if nothing was kept. A damaged copy is an error and as good as none.
func load(dir, path string) (kept, bool, error) {
	file := filepath.Join(dir, fileName(path))
	stored, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return kept{}, false, nil
	}
	if err != nil {
		return kept{}, false, err
	}
	sum, data, _ := bytes.Cut(stored, []byte("\n"))
	want := sha256.Sum256(data)
	var k kept
	if string(sum) != hex.EncodeToString(want[:]) || json.Unmarshal(data, &k) != nil || k.Path != path {
		return kept{}, false, fmt.Errorf("the copy %s is damaged", file)
	}
	return k, true, nil
}

// forget removes all copies but those of paths.
func forget(dir string, paths []string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	wanted := map[string]bool{}
	for _, path := range paths {
		wanted[fileName(path)] = true
	}
	for _, entry := range entries {
		if !wanted[entry.Name()] {
			err = errors.Join(err, os.Remove(filepath.Join(dir, entry.Name())))
		}
	}
	return err
}
