package gather

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"

	"rekindle.edge/agent/readiness"
)

const (
	// leastBytes and leastInodes are what the start of a node's pods takes at least.
	leastBytes, leastInodes = 32 << 20, 1000
	// soon is how far above a threshold there is little room.
	soon = 0.05
)

// defaultEviction are kubelet's own thresholds.
var defaultEviction = map[string]string{"nodefs.available": "10%", "nodefs.inodesFree": "5%", "imagefs.available": "15%", "imagefs.inodesFree": "5%"}

// disks looks at the file systems that a start writes to.
func (g *Gatherer) disks(facts *readiness.Facts, kubelet kubeletFacts) {
	if g.full == nil {
		g.full = map[string]bool{}
	}
	statfs := unix.Statfs
	if g.statfs != nil {
		statfs = g.statfs
	}
	threshold := func(signal string) string {
		if value, ok := kubelet.config.EvictionHard[signal]; ok {
			return value
		}
		if kubelet.config.EvictionHard != nil && !kubelet.config.MergeDefaultEvictionSettings {
			return "" // kubelet takes what is not named for none
		}
		return defaultEviction[signal]
	}
	containers := "/var/lib/containerd"
	if g.blobs != "" {
		containers = filepath.Dir(filepath.Dir(g.blobs))
	}
	seen := map[string]bool{}
	for _, disk := range []struct{ use, path, signal string }{
		{"the agent's store", g.Settings.StateDir, ""},
		{"kubelet's directory", kubelet.root, "nodefs"},
		{"the container runtime", containers, "imagefs"},
	} {
		var fs unix.Statfs_t
		if statfs(g.Root+disk.path, &fs) != nil {
			continue // not there: made when it is needed, on a disk that is looked at
		}
		d := readiness.Disk{Use: disk.use, Path: disk.path, ReadOnly: g.mounts.readOnly(disk.path)}
		space := room{"space", fs.Bavail * uint64(fs.Bsize), fs.Blocks * uint64(fs.Bsize), leastBytes, threshold(disk.signal + ".available")}
		inodes := room{"inodes", fs.Ffree, fs.Files, leastInodes, threshold(disk.signal + ".inodesFree")}
		for _, r := range []room{space, inodes} {
			key := disk.path + r.what
			switch short, little := r.short(g.full[key]); {
			case short:
				d.Full = r.what
				g.full[key] = true
			case little && d.Full == "":
				d.Low = r.what
				delete(g.full, key)
			default:
				delete(g.full, key)
			}
		}
		// One file system is told once, of what kubelet judges it by.
		id := fmt.Sprint(g.mounts.of(disk.path).point, d.Full, d.Low)
		if !seen[id] || d.ReadOnly {
			facts.Node.Disks = append(facts.Node.Disks, d)
		}
		seen[id] = true
	}
}

// room is how much of something a file system has.
type room struct {
	what        string
	free, total uint64
	least       uint64
	// threshold of kubelet's, as a part or an amount; empty: none.
	threshold string
}

// short says whether there is less than kubelet's threshold or than a start takes, little
// whether that is near. What was short stays so until there is a little more, so that a
// disk at the threshold does not make news all the time.
func (r room) short(was bool) (short, little bool) {
	if r.total == 0 {
		return false, false // a file system that does not count them
	}
	limit := min(r.least, r.total/20)
	if part, ok := strings.CutSuffix(r.threshold, "%"); ok {
		if percent, err := strconv.ParseFloat(part, 64); err == nil {
			limit = max(limit, uint64(percent/100*float64(r.total)))
		}
	} else if quantity, err := resource.ParseQuantity(r.threshold); err == nil {
		limit = max(limit, uint64(quantity.Value()))
	}
	if was {
		limit += r.total / 200
	}
	return r.free < limit, r.free < limit+uint64(soon*float64(r.total))
}
