package images

import (
	"maps"
	"path/filepath"
	"slices"

	"rekindle.edge/agent/host"
)

// state is what outlives the agent, in one small file. It is lost without harm: images are
// checked once more.
type state struct {
	// Boot is the one that Checked is of; Unclean says that it followed no orderly shutdown.
	Boot    string `json:"boot"`
	Unclean bool   `json:"unclean"`
	// Checked are layers found whole in this boot, by the name of their snapshot.
	Checked map[string]bool `json:"checked,omitempty"`
	// Damaged are images, by id.
	Damaged map[string]bool `json:"damaged,omitempty"`
	// Sizes of images that did not fit in the budget, by reference.
	Sizes map[string]int64 `json:"sizes,omitempty"`

	path string
}

// StateFile is where a keeper remembers what was checked, below the agent's directory.
func StateFile(stateDir string) string { return filepath.Join(stateDir, "images.json") }

// loadState begins a boot, or goes on with it. With an error the state is that of a node of which
// nothing is known.
func loadState(path, boot string, unclean bool) (*state, error) {
	s := &state{}
	_, err := host.LoadJSON(path, s)
	if err != nil {
		// Which images were damaged is not known any more: all are checked, as after a power cut.
		*s, unclean = state{}, true
	}
	s.path = path
	if s.Boot != boot {
		s.Boot, s.Unclean, s.Checked = boot, false, nil
	}
	s.Unclean = s.Unclean || unclean
	for _, m := range []*map[string]bool{&s.Checked, &s.Damaged} {
		if *m == nil {
			*m = map[string]bool{}
		}
	}
	if s.Sizes == nil {
		s.Sizes = map[string]int64{}
	}
	return s, err
}

func (s *state) save() error { return host.SaveJSON(s.path, s) }

// remember notes sizes of images that were too large, and forgets those not wanted.
func (s *state) remember(tooLarge map[string]int64, wanted []want) bool {
	before := maps.Clone(s.Sizes)
	maps.Copy(s.Sizes, tooLarge)
	maps.DeleteFunc(s.Sizes, func(reference string, _ int64) bool {
		return !slices.ContainsFunc(wanted, func(w want) bool { return w.reference == reference })
	})
	return !maps.Equal(before, s.Sizes)
}
