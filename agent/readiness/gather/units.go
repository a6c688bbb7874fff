package gather

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"rekindle.edge/agent/host"
	"rekindle.edge/agent/readiness"
)

// Units asks systemd.
type Units interface {
	// MainPID is the main process of a service, 0 when it has none.
	MainPID(ctx context.Context, unit string) (int, error)
	// UnitFile is how a unit is set up.
	UnitFile(ctx context.Context, unit string) (host.UnitFile, error)
}

// unitCache keeps what systemd said for as long as nothing was enabled, disabled or masked.
type unitCache struct {
	stamp time.Time
	asked time.Time
	units []readiness.Unit
	waits bool
}

// unitRefresh is how often systemd is asked although no file of a unit has changed.
const unitRefresh = time.Minute

const (
	systemdDir    = "/etc/systemd/system"
	agentUnit     = "rekindle-agent.service"
	socketUnit    = "rekindle-agent.socket"
	earlyUnit     = "rekindle-early.service"
	networkOnline = "network-online.target"
)

// systemd looks at the units, and at the files of the installation.
func (g *Gatherer) systemd(ctx context.Context, facts *readiness.Facts) {
	installed := g.Files != nil
	if installed {
		paths, err := g.Files()
		if err == nil {
			for _, path := range paths {
				if _, err := os.Lstat(g.Root + path); err != nil {
					facts.Node.Missing = append(facts.Node.Missing, path)
				}
			}
		}
	}
	if stamp := g.unitStamp(); !stamp.Equal(g.units.stamp) || facts.Now.Sub(g.units.asked) >= unitRefresh || facts.Now.Before(g.units.asked) {
		g.units = unitCache{stamp: stamp, asked: facts.Now}
		names := []string{g.Settings.KubeletUnit, g.Settings.ContainerdUnit}
		if installed {
			names = append(names, agentUnit, socketUnit)
		}
		pulled := map[string]bool{}
		for _, name := range names {
			file, err := g.Units.UnitFile(ctx, name)
			if err != nil {
				continue // without systemd nothing is known of units
			}
			unit := readiness.Unit{Name: name, State: file.State, Pulled: pulled[name]}
			if file.State == "enabled" || pulled[name] {
				for _, other := range file.Wants {
					pulled[other] = true
				}
			}
			if name == g.Settings.KubeletUnit {
				unit.Restart = file.RestartPause
				g.units.waits = slices.Contains(file.After, networkOnline)
			}
			g.units.units = append(g.units.units, unit)
		}
	}
	facts.Node.Units = g.units.units
	facts.Node.NetworkWait = g.units.waits && !g.early()
	_, errClass := os.Stat(g.Root + "/sys/class/rtc/rtc0")
	_, errDevice := os.Stat(g.Root + "/dev/rtc0")
	facts.Node.Clockless = errClass != nil && errDevice != nil
}

// early says whether kubelet is started without waiting for the network.
func (g *Gatherer) early() bool {
	_, unit := os.Stat(g.Root + filepath.Join(systemdDir, earlyUnit))
	_, resolver := os.Stat(g.Root + "/etc/resolv.conf")
	return unit == nil && resolver == nil
}

// unitStamp changes with whatever systemctl enable, disable, mask and edit write.
func (g *Gatherer) unitStamp() time.Time {
	dirs, _ := filepath.Glob(g.Root + systemdDir + "/*.wants") // the pattern is sound
	var newest time.Time
	for _, dir := range append(dirs, g.Root+systemdDir) {
		if info, err := os.Stat(dir); err == nil && info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	}
	return newest
}
