package boot

import "time"

// signEvery bounds how much later than the last sign of life anything of that boot can be.
const signEvery = 2 * time.Minute

// Catch-up of a wall clock that starts in the past, as on a board without a battery-backed
// one. Kubelet and the runtime order containers by the time of their creation: with a clock
// before that of the last boot, the dead container of then would beat the running one.

// CatchUp is what the wall clock has to be set to, so that it is not before anything that
// this node has stamped; zero: it stays. It is never set back. Last is the last sign of life,
// nil if there is none; newest is the latest time in what kubelet last wrote of its pods.
// A clock that was set ahead and then put right within a boot is left alone, and so is one
// that the kernel knows to be synchronised.
func CatchUp(now time.Time, bootID string, last *Alive, newest time.Time, synchronised bool) time.Time {
	if last == nil || last.BootID == bootID || synchronised || last.Wall.Before(plausibleSince) {
		return time.Time{}
	}
	target := last.Wall
	if newest.After(target) && newest.Before(target.Add(signEvery)) {
		target = newest
	}
	// Times in a status are cut to whole seconds.
	target = target.Add(time.Second)
	if !now.Before(target) {
		return time.Time{}
	}
	return target
}
