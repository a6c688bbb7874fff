// Package host reads the machine that the agent runs on: clocks, processes and systemd.
// Everything under /proc is read below a root path, so that tests bring their own.
package host

import (
	"time"

	"golang.org/x/sys/unix"
)

// Clock tells the two times that the agent knows. Durations are differences of Boot;
// Wall is information for people and may jump.
type Clock interface {
	// Boot is the time since kernel start, including suspend (CLOCK_BOOTTIME).
	Boot() time.Duration
	// Wall is the time of day. It carries no monotonic reading.
	Wall() time.Time
}

// SystemClock is the machine's clock, as the time namespace of the agent shows it.
type SystemClock struct{}

// Boot implements Clock.
func (SystemClock) Boot() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		// The call cannot fail with a valid clock and pointer; every supported kernel has it.
		panic("CLOCK_BOOTTIME: " + err.Error())
	}
	return time.Duration(ts.Nano())
}

// Wall implements Clock.
func (SystemClock) Wall() time.Time { return time.Now().Round(0) }
