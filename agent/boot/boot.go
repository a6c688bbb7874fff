// Package boot knows which boot of the node this is and how the one before it ended.
package boot

import (
	"time"

	"rekindle.edge/api/v1alpha1"
)

// Mark is what the store remembers of the boot in which it was last written.
type Mark struct {
	BootID string `json:"bootID"`
	// Stop says how the agent was last stopped in that boot. Empty: it was not.
	Stop Stop `json:"stop,omitempty"`
	// StopWall is when, by the wall clock.
	StopWall time.Time `json:"stopWall,omitzero"`
}

// Stop says why the agent was stopped.
type Stop string

const (
	// StopSystem is a stop together with the whole system, which was shutting down.
	StopSystem Stop = "System"
	// StopAgent is a stop of the agent alone. How the boot ended later, nobody saw.
	StopAgent Stop = "Agent"
)

// Alive is the sign of life that is written every minute.
type Alive struct {
	BootID string        `json:"bootID"`
	Boot   time.Duration `json:"boot"`
	Wall   time.Time     `json:"wall"`
	// MadeUp says that Wall counts from where CatchUp has set it, and nobody has put it right
	// since: it tells the order of things, and not how long the node was off.
	MadeUp bool `json:"madeUp,omitempty"`
}

// Previous is what is known of the boot before this one.
type Previous struct {
	BootID string
	End    v1alpha1.PreviousEnd
	// LastSign is the last sign of life by the wall clock; zero: none.
	LastSign time.Time
}

// Before judges the end of the previous boot from what it left in the store. It is nil
// when there is nothing to judge: the store is new, or the agent was already running in
// this boot.
func Before(bootID string, mark *Mark, alive *Alive) *Previous {
	if mark == nil || mark.BootID == bootID {
		return nil
	}
	previous := &Previous{BootID: mark.BootID, End: v1alpha1.PreviousEndUnknown}
	if alive != nil && alive.BootID == mark.BootID {
		previous.LastSign = alive.Wall
	}
	if mark.StopWall.After(previous.LastSign) {
		previous.LastSign = mark.StopWall
	}
	switch mark.Stop {
	case StopSystem:
		previous.End = v1alpha1.PreviousEndClean
	case StopAgent:
		// The agent was off when the node went down: it may have been either.
	default:
		previous.End = v1alpha1.PreviousEndPowerLoss
	}
	return previous
}

// plausibleSince is before every Rekindle: a wall clock that shows less was never set.
var plausibleSince = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// maxDown bounds a believable outage.
const maxDown = 5 * 365 * 24 * time.Hour

// Down is the time from the last sign of life to kernel start, both by the wall clock.
// Nil: one of them is missing or cannot be true.
func Down(lastSign, kernelStart time.Time) *time.Duration {
	if lastSign.Before(plausibleSince) || kernelStart.Before(plausibleSince) {
		return nil
	}
	down := kernelStart.Sub(lastSign)
	if down < 0 || down > maxDown {
		return nil
	}
	return &down
}
