package edgenode

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// hostUnits are the machine's unit files that a node gets; all others stay unseen.
var hostUnits = []string{
	"-.slice", "basic.target", "ctrl-alt-del.target", "emergency.target", "exit.target", "final.target",
	"halt.target", "local-fs-pre.target", "local-fs.target", "multi-user.target", "network-online.target",
	"network-pre.target", "network.target", "paths.target", "poweroff.target", "reboot.target", "rescue.target",
	"shutdown.target", "slices.target", "sockets.target", "swap.target", "sysinit.target", "time-set.target",
	"time-sync.target", "timers.target", "umount.target",
	"systemd-exit.service", "systemd-halt.service", "systemd-poweroff.service", "systemd-reboot.service",
	"systemd-journald.service", "systemd-journald.socket", "systemd-journald-dev-log.socket",
}

// sysctls are what kubelet sets on a machine. The node sees them set already, so
// that kubelet leaves the machine's own alone.
var sysctls = map[string]string{
	"kernel/keys/root_maxbytes": "25000000",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
}

// writeBootFiles lays out what each boot mounts or runs from outside of the disk.
func (n *Node) writeBootFiles() error {
	files := n.file("files")
	for _, script := range []string{"start.sh", "mounts.sh", "init.sh"} {
		content, err := embedded.ReadFile("files/" + script)
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(files, script), content, 0o755); err != nil {
			return err
		}
	}
	for name, value := range sysctls {
		if err := writeFile(filepath.Join(files, "sysctl", name), []byte(value+"\n"), 0o644); err != nil {
			return err
		}
	}
	for _, unit := range hostUnits {
		content, err := os.ReadFile(filepath.Join("/usr/lib/systemd/system", unit))
		if errors.Is(err, fs.ErrNotExist) {
			continue // slices and targets differ between distributions
		}
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(files, "units", unit), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) file(name string) string { return filepath.Join(n.dir, name) }

func writeFile(path string, content []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, mode)
}
