package order

import (
	"path/filepath"
	"time"

	"rekindle.edge/agent/host"
	"rekindle.edge/api/v1alpha1"
)

// state is what outlives a restart of the agent within the boot. Times are since kernel start.
type state struct {
	BootID string `json:"bootID"`
	// Began is when the first call came. Nil: none has.
	Began *time.Duration `json:"began,omitempty"`
	// Opened are the groups that were opened, in their order; the last one is waited for.
	Opened []opened `json:"opened,omitempty"`
	// Over says that nothing is held any more in this boot.
	Over bool `json:"over,omitempty"`
}

// opened is a group whose pods may start.
type opened struct {
	Name string        `json:"name"`
	At   time.Duration `json:"at"`
	// Result is how it was with the group when the next one was opened. Empty: it is not yet.
	Result    v1alpha1.StageResult `json:"result,omitempty"`
	WaitedFor string               `json:"waitedFor,omitempty"`
}

// fits says whether the opened groups are the first ones of a policy.
func (s *state) fits(groups []group) bool {
	for i, o := range s.Opened {
		if i >= len(groups) || groups[i].name != o.Name {
			return false
		}
	}
	return true
}

// record is the state as a recovery's record has it. Groups beyond its bound are left out.
func (s *state) record() []v1alpha1.StageRecovery {
	const bound = 16
	var stages []v1alpha1.StageRecovery
	for _, o := range s.Opened[:min(bound, len(s.Opened))] {
		stages = append(stages, v1alpha1.StageRecovery{Name: o.Name, OpenedMilliseconds: o.At.Milliseconds(), Result: o.Result, WaitedFor: o.WaitedFor})
	}
	return stages
}

const stateFile = "order.json"

// loadState is a new state if there is none of this boot.
func loadState(dir, bootID string) (state, error) {
	var s state
	found, err := host.LoadJSON(filepath.Join(dir, stateFile), &s)
	if err != nil || !found || s.BootID != bootID {
		return state{BootID: bootID}, err
	}
	return s, nil
}

func (s *state) save(dir string) error { return host.SaveJSON(filepath.Join(dir, stateFile), s) }
