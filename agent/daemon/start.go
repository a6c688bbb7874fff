package daemon

import (
	"time"

	"rekindle.edge/agent/boot"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/agent/timeline"
	"rekindle.edge/api/v1alpha1"
)

// defaultTargetSeconds applies while no policy does.
const defaultTargetSeconds = 30

// start is how the agent begins.
type start struct {
	// previous boot; nil: there is none, or the agent ran in this boot before.
	previous *boot.Previous
	// interrupted is the closed record of an earlier boot whose recovery was not over.
	interrupted *v1alpha1.Recovery
	// open is the record of this boot. Nil: there is none to keep.
	open *timeline.State
}

// decide makes of what is stored how the agent begins.
//
// A boot is measured when its beginning is known: the store must have the pods that were
// there before, which a new store has not; and an agent that comes up after the record's
// deadline has seen nothing of the recovery.
func decide(bootID string, now time.Duration, contents snapshot.Contents, alive *boot.Alive) start {
	s := start{previous: boot.Before(bootID, contents.Mark, alive)}
	if open := contents.Open; open != nil {
		if open.BootID == bootID {
			s.open = open
			return s
		}
		var lastSign time.Duration
		var down *time.Duration
		if alive != nil && alive.BootID == open.BootID {
			lastSign = alive.Boot
			if !alive.MadeUp {
				down = boot.Down(open.LastSign, alive.Wall.Add(-alive.Boot))
			}
		}
		record := open.CloseRestarted(lastSign, down)
		s.interrupted = &record
	}
	if s.previous == nil || !contents.Listed {
		return s
	}
	state := timeline.Begin(bootID, s.previous.End, s.previous.LastSign, targetSeconds(contents.Spec), contents.Pods)
	if now < state.Deadline() {
		s.open = &state
	}
	return s
}

func targetSeconds(spec *snapshot.Spec) int32 {
	if spec == nil || spec.Spec.Target.RecoverySeconds == 0 {
		return defaultTargetSeconds
	}
	return spec.Spec.Target.RecoverySeconds
}
