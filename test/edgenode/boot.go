package edgenode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"rekindle.edge/test/internal/lab"
)

// A Boot is one run of a node, from kernel start to its end.
type Boot struct {
	// ID is what /proc/sys/kernel/random/boot_id says on the node.
	ID string
	// Zero is the wall-clock time at which the node's CLOCK_BOOTTIME was zero: kernel start.
	Zero time.Time
	// Logs is the folder with kubelet.log, containerd.log, agent.log and kube-proxy.log of this boot.
	Logs string

	boottimeZero int64 // seconds of the machine's CLOCK_BOOTTIME
	process      *lab.Process
	pid1         int
}

// Since is the node's CLOCK_BOOTTIME at a wall-clock time, such as a log line's.
func (b *Boot) Since(t time.Time) time.Duration { return t.Sub(b.Zero) }

// Uptime is the node's CLOCK_BOOTTIME now.
func (b *Boot) Uptime() time.Duration {
	return clock(unix.CLOCK_BOOTTIME) - time.Duration(b.boottimeZero)*time.Second
}

// Boot switches the node on and returns when PID 1 runs, long before kubelet does.
func (n *Node) Boot(ctx context.Context) (*Boot, error) {
	if n.boot != nil {
		return nil, fmt.Errorf("node %s is on already", n.Name)
	}
	n.boots++
	dir := n.file("boot-" + strconv.Itoa(n.boots))
	boot := &Boot{ID: uuid.NewString(), Logs: filepath.Join(dir, "logs")}
	if err := os.MkdirAll(boot.Logs, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "boot_id"), []byte(boot.ID+"\n"), 0o644); err != nil {
		return nil, err
	}
	n.boot = boot
	if err := n.powerOn(ctx, dir); err != nil {
		n.kill()
		return nil, errors.Join(fmt.Errorf("booting %s: %w", n.Name, err), n.tidy(ctx))
	}
	n.options.Log("%s: boot %d, id %s", n.Name, n.boots, boot.ID)
	return boot, nil
}

func (n *Node) powerOn(ctx context.Context, dir string) error {
	if err := n.mountDisk(ctx); err != nil {
		return err
	}
	if err := n.plugIn(ctx); err != nil {
		return err
	}
	cgroups, err := n.createCgroups()
	if err != nil {
		return err
	}
	cmd := exec.Command("bash", n.file("files/start.sh"))
	cmd.Env = append(os.Environ(), "NODE="+n.Name, "ROOT="+n.root(), "FILES="+n.file("files"), "BOOT="+dir,
		"LOGS="+n.boot.Logs, "TOOLS="+n.cluster.Tools(), "NETNS="+n.netns())
	cmd.Env = append(cmd.Env, cgroups...)
	zero, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	defer zero.Close()
	ready, readyEnd, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	cmd.ExtraFiles = []*os.File{readyEnd}
	n.boot.process, err = n.cluster.Lab().Start(fmt.Sprintf("%s-boot-%d", n.Name, n.boots), cmd)
	readyEnd.Close()
	if err != nil {
		return err
	}
	if _, err := ready.Read(make([]byte, 1)); err != nil {
		return n.boot.process.Err()
	}
	n.waitForZero()
	if _, err := fmt.Fprintf(zero, "%d %d\n", n.boot.boottimeZero, clock(unix.CLOCK_MONOTONIC)/time.Second); err != nil {
		return err
	}
	return n.findPID1(ctx, filepath.Join(dir, "pid1"))
}

// waitForZero sleeps until a full second of CLOCK_BOOTTIME begins: unshare takes
// offsets in seconds, and a node's clock may not start below zero.
func (n *Node) waitForZero() {
	now := clock(unix.CLOCK_BOOTTIME)
	next := now.Truncate(time.Second) + time.Second
	time.Sleep(next - now)
	n.boot.boottimeZero = int64(next / time.Second)
	n.boot.Zero = time.Now().Add(next - clock(unix.CLOCK_BOOTTIME)).Round(0)
}

// findPID1 waits until PID 1 is systemd: before that it is a script, which still
// sees the machine's files.
func (n *Node) findPID1(ctx context.Context, file string) error {
	for {
		if content, err := os.ReadFile(file); err == nil && strings.HasSuffix(string(content), "\n") {
			if n.boot.pid1, err = strconv.Atoi(strings.TrimSpace(string(content))); err != nil {
				return err
			}
			if comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", n.boot.pid1)); err == nil && string(comm) == "systemd\n" {
				return nil
			}
		}
		select {
		case <-n.boot.process.Done():
			return n.boot.process.Err()
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

// plugIn gives the boot a network namespace with the uplink in its present state.
func (n *Node) plugIn(ctx context.Context) error {
	if _, err := lab.Run(ctx, "ip", "netns", "add", n.netns()); err != nil {
		return err
	}
	if err := n.cluster.Network().Attach(ctx, n.slot, n.netns()); err != nil {
		return err
	}
	if _, err := lab.Run(ctx, "nsenter", "--net=/run/netns/"+n.netns(), "sysctl", "-qw", "net.ipv4.ip_forward=1"); err != nil {
		return err
	}
	return n.cluster.Network().SetWAN(ctx, n.slot, n.netns(), n.wan)
}

// createCgroups makes the node's folder in each hierarchy and gives the environment of start.sh for them.
func (n *Node) createCgroups() ([]string, error) {
	var procs, v1 []string
	for _, h := range lab.Hierarchies() {
		if err := h.CreateCgroup(n.cgroup()); err != nil {
			return nil, err
		}
		procs = append(procs, filepath.Join(h.Mountpoint, n.cgroup(), "cgroup.procs"))
		if !cgroupV2() {
			v1 = append(v1, filepath.Base(h.Mountpoint)+":"+h.Options)
		}
	}
	return []string{"CGROUP_PROCS=" + strings.Join(procs, " "), "CGROUP_V1=" + strings.Join(v1, " ")}, nil
}

// clock reads one of the machine's clocks.
func clock(id int32) time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(id, &now); err != nil {
		panic(err) // both clocks exist on every Linux that has time namespaces
	}
	return time.Duration(now.Nano())
}

func sleep(milliseconds int) { time.Sleep(time.Duration(milliseconds) * time.Millisecond) }
