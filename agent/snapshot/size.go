package snapshot

import (
	"os"
	"path/filepath"

	"rekindle.edge/agent/snapshot/durable"
)

// OnDisk is the number of the newest sealed generation in dir, 0 if there is none, and how
// many bytes the store takes with all generations. What cannot be looked at counts nothing.
func OnDisk(dir string) (generation, bytes int64) {
	if info, err := os.Stat(filepath.Join(dir, durable.FileName)); err == nil {
		bytes = info.Size()
	}
	// The pattern of the names is sound, nothing else is an error.
	sealed, _ := durable.Generations(dir)
	for _, g := range sealed {
		generation = max(generation, int64(g.Number))
		bytes += g.Bytes
	}
	return generation, bytes
}
