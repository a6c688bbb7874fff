// Package host reads the machine that the agent runs on: clocks, processes and systemd.
// Everything under /proc is read below a root path, so that tests bring their own.
package host

import (
	"context"
	"fmt"
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

// SetWall sets the machine's time of day. It needs CAP_SYS_TIME.
func (SystemClock) SetWall(t time.Time) error {
	ts := unix.NsecToTimespec(t.UnixNano())
	if err := unix.ClockSettime(unix.CLOCK_REALTIME, &ts); err != nil {
		return fmt.Errorf("setting the clock to %s: %w", t.Format(time.RFC3339), err)
	}
	return nil
}

// Synchronised says whether the kernel has been told that the time of day is right. It is
// not right after a boot.
func (SystemClock) Synchronised() bool {
	var state unix.Timex
	_, err := unix.Adjtimex(&state)
	return err == nil && state.Status&unix.STA_UNSYNC == 0
}

// Wall implements Clock.
func (SystemClock) Wall() time.Time { return time.Now().Round(0) }

// Sleep waits for d, and is false when ctx has ended before.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
