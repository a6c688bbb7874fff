package edgenode

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"rekindle.edge/test/internal/lab"
)

// UnsupportedError says why this machine cannot run nodes.
type UnsupportedError struct {
	// Missing has one sentence for each thing that is not to be had.
	Missing []string
}

func (e *UnsupportedError) Error() string {
	return "this machine cannot run edge nodes: " + strings.Join(e.Missing, "; ")
}

// Check says what this machine lacks for a node with one of the kubelets of the
// tools folder: nil or an *UnsupportedError.
func Check(tools string, kubelet KubeletVersion) error {
	var missing []string
	if os.Getuid() != 0 {
		missing = append(missing, "not root: run as root")
	}
	for file, cure := range map[string]string{
		"/usr/lib/systemd/systemd": "systemd is not installed, and PID 1 of a node is systemd",
		"/proc/self/ns/time":       "the kernel has no time namespaces (CONFIG_TIME_NS, Linux 5.6)",
		"/proc/self/ns/cgroup":     "the kernel has no cgroup namespaces",
		"/dev/loop-control":        "no loop devices: modprobe loop",
		"/usr/lib/cni/bridge":      "no CNI plugins: apt-get install containernetworking-plugins",
	} {
		if _, err := os.Stat(file); err != nil {
			missing = append(missing, fmt.Sprintf("%s (%s)", cure, file))
		}
	}
	for program, pkg := range map[string]string{
		"runc": "runc", "ip": "iproute2", "iptables": "iptables", "mkfs.ext4": "e2fsprogs",
		"nsenter": "util-linux", "unshare": "util-linux", "losetup": "mount", "conntrack": "conntrack",
		"dbus-daemon": "dbus",
	} {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, fmt.Sprintf("%s is not installed: apt-get install %s", program, pkg))
		}
	}
	o := Options{Kubelet: kubelet}
	for _, tool := range []string{"containerd", "containerd-shim-runc-v2", "ctr", filepath.Base(o.kubeletBinary())} {
		if _, err := os.Stat(filepath.Join(tools, tool)); err != nil {
			missing = append(missing, fmt.Sprintf("%s is not built: make %s", tool, filepath.Join("bin/tools", tool)))
		}
	}
	if len(missing) == 0 {
		// The files are there; a container may be forbidden to use them all the same.
		namespaces := []string{"--mount", "--uts", "--ipc", "--net", "--cgroup", "--pid", "--fork", "--time", "--boottime", "1", "true"}
		if out, err := exec.Command("unshare", namespaces...).CombinedOutput(); err != nil {
			missing = append(missing, fmt.Sprintf("namespaces are refused here (unshare: %s)", strings.TrimSpace(string(out))))
		}
	}
	if len(lab.Hierarchies()) == 0 {
		missing = append(missing, "no cgroup file system is mounted")
	}
	if len(missing) > 0 {
		return &UnsupportedError{Missing: missing}
	}
	return nil
}

// hasCapability says whether this process has one of the kernel's capabilities.
func hasCapability(number int) bool {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	return effective(string(status))&(1<<number) != 0
}

// effective reads the effective capability set of a /proc/PID/status file.
func effective(status string) uint64 {
	for line := range strings.Lines(status) {
		if hex, ok := strings.CutPrefix(line, "CapEff:"); ok {
			set, err := strconv.ParseUint(strings.TrimSpace(hex), 16, 64)
			if err == nil {
				return set
			}
		}
	}
	return 0
}

func restrictOOM() bool { return !hasCapability(unix.CAP_SYS_RESOURCE) }

// cgroupV2 says that controllers live in the unified tree alone.
func cgroupV2() bool {
	hierarchies := lab.Hierarchies()
	return len(hierarchies) == 1 && hierarchies[0].V2()
}
