package stale

import "path/filepath"

// A verdict is what becomes of the stop of a sandbox of an earlier boot.
type verdict string

const (
	// deferred: acknowledged now, carried out after the recovery.
	deferred verdict = "deferred"
	// unknownRange: its address may be needed, and the range is not known.
	unknownRange verdict = "range of addresses not known"
	// lostLease: its address may belong to another pod by now, and a plugin might take
	// rules away by address; the earlier, the fewer pods there are.
	lostLease verdict = "lease lost"
	// shortRange: its address is needed.
	shortRange verdict = "range of addresses short"
)

// spare is how many addresses of a pool stay free for pods that come unexpectedly and for
// a second attempt at a sandbox.
func spare(capacity int) int { return max(3, capacity/16) }

// A view is what is known of the addresses at one moment.
type view struct {
	// networks is empty if they are not known.
	networks []network
	// leases are those of each network.
	leases [][]lease
	// stale says whether a lease is of an earlier boot.
	stale func(lease) bool
	// expected is how many pods want an address in this boot, started or not.
	expected int
	// setUp says whether a sandbox's network was set up and not taken down: its result is
	// in the plugins' cache.
	setUp func(sandbox string) bool
}

// decide says what becomes of a stop.
func (v view) decide(sandbox string) verdict {
	if len(v.networks) == 0 {
		return unknownRange
	}
	switch holds := v.holds(sandbox); {
	case holds && !v.fits():
		return shortRange
	case !holds && v.setUp(sandbox):
		return lostLease
	}
	// What holds no address and is not set up was stopped in an earlier boot, or is on the
	// node's network.
	return deferred
}

func (v view) holds(sandbox string) bool {
	for _, leases := range v.leases {
		for _, l := range leases {
			if l.sandbox == sandbox {
				return true
			}
		}
	}
	return false
}

// fits says whether all expected pods find an address while all that are held stay so.
func (v view) fits() bool {
	for i, n := range v.networks {
		for _, p := range n.pools {
			stale, ours := 0, 0
			for _, l := range v.leases[i] {
				switch {
				case !p.contains(l.address):
				case v.stale(l):
					stale++
				default:
					ours++
				}
			}
			capacity := p.capacity()
			if stale > 0 && stale+max(v.expected, ours)+spare(capacity) > capacity {
				return false
			}
		}
	}
	return true
}

// resultsDir is where the plugins' library keeps what they answered.
const resultsDir = "/var/lib/cni/results"

// setUpIn looks for a sandbox's results.
func setUpIn(root string, networks []network) func(string) bool {
	return func(sandbox string) bool {
		for _, n := range networks {
			found, _ := filepath.Glob(filepath.Join(root, resultsDir, n.name+"-"+sandbox+"-*"))
			if len(found) > 0 {
				return true
			}
		}
		return false
	}
}
