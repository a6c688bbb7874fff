package stale

import (
	"fmt"
	"path/filepath"

	"rekindle.edge/agent/host"
)

// A mark is how far a sandbox of an earlier boot is.
type mark string

const (
	listed       mark = "Listed"
	acknowledged mark = "Acknowledged"
	done         mark = "Done"
)

// state is what outlives a restart of the agent within the boot.
type state struct {
	BootID string `json:"bootID"`
	// Sandboxes are those of earlier boots, by id. It is empty where they could not be told
	// from those of this boot.
	Sandboxes map[string]mark `json:"sandboxes"`
	// Pods is how many pods they belong to.
	Pods int `json:"pods"`
	// Orphans are leases of addresses that belonged to no sandbox at the beginning.
	Orphans []lease `json:"orphans,omitempty"`
}

func statePath(dir, bootID string) string {
	return filepath.Join(dir, "stale-sandboxes."+bootID+".json")
}

// loadState is nil if there is none of this boot.
func loadState(dir, bootID string) (*state, error) {
	path := statePath(dir, bootID)
	var s state
	if found, err := host.LoadJSON(path, &s); err != nil || !found {
		return nil, err
	}
	if s.BootID != bootID {
		return nil, fmt.Errorf("%s: it is of boot %q", path, s.BootID)
	}
	return &s, nil
}

func (s *state) save(dir string) error { return host.SaveJSON(statePath(dir, s.BootID), s) }

func (s *state) with(want mark) []string {
	var ids []string
	for id, m := range s.Sandboxes {
		if m == want {
			ids = append(ids, id)
		}
	}
	return ids
}
