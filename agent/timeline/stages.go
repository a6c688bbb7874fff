package timeline

import (
	"slices"

	"rekindle.edge/api/v1alpha1"
)

// StagesOpened is all stages of the start-up order that were opened in this boot.
type StagesOpened struct{ Stages []v1alpha1.StageRecovery }

func (e StagesOpened) apply(t *Tracker) bool {
	changed := !slices.Equal(t.state.Stages, e.Stages)
	t.state.Stages = e.Stages
	return changed
}
