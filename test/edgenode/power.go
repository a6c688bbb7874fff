package edgenode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"rekindle.edge/test/internal/lab"
)

// shutdownTimeout bounds systemd's orderly shutdown; see system.conf in populate.go.
const shutdownTimeout = 90 * time.Second

// systemd takes these of the real-time signals (from glibc's SIGRTMIN) as orders to PID 1.
const (
	signalPoweroff = unix.Signal(34 + 4)
	signalReboot   = unix.Signal(34 + 5)
)

// PowerCut takes the power away: every process ends at once, and what was not
// synced is lost.
func (n *Node) PowerCut(ctx context.Context) error {
	if n.boot == nil {
		return ErrOff
	}
	n.options.Log("%s: power cut", n.Name)
	// Killing PID 1 kills all processes of its namespace. The disk goes in the same
	// breath, so that none of them gets to see it gone, nor the kernel to write.
	err := errors.Join(unix.Kill(n.boot.pid1, unix.SIGKILL), n.loseUnsynced())
	if err != nil {
		return err
	}
	<-n.boot.process.Done()
	next := n.file(copiedImage)
	if err := copyImage(ctx, n.image(), next); err != nil {
		return err
	}
	if err := n.tidy(ctx); err != nil {
		return err
	}
	if err := os.Rename(next, n.image()); err != nil {
		return err
	}
	return os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0)
}

// Shutdown is systemd's orderly shutdown, with Options.Logind that of logind, which kubelet
// may delay.
func (n *Node) Shutdown(ctx context.Context) error { return n.order(ctx, signalPoweroff) }

// Reboot is systemd's orderly shutdown and a new boot.
func (n *Node) Reboot(ctx context.Context) (*Boot, error) {
	if err := n.order(ctx, signalReboot); err != nil {
		return nil, err
	}
	return n.Boot(ctx)
}

func (n *Node) order(ctx context.Context, signal unix.Signal) error {
	if n.boot == nil {
		return ErrOff
	}
	n.options.Log("%s: orderly shutdown", n.Name)
	if err := n.give(ctx, signal); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	select {
	case <-n.boot.process.Done():
		return errors.Join(n.writeBack(), n.tidy(ctx))
	case <-ctx.Done():
		return fmt.Errorf("node %s still runs %s after the order to shut down: %w; its processes: %s\n%s",
			n.Name, shutdownTimeout, ctx.Err(), strings.Join(n.processes(), "; "), n.journal())
	}
}

// give gives the order. A signal to PID 1 is one that nobody may delay.
func (n *Node) give(ctx context.Context, signal unix.Signal) error {
	if !n.options.Logind {
		return unix.Kill(n.boot.pid1, signal)
	}
	verb := map[unix.Signal]string{signalPoweroff: "poweroff", signalReboot: "reboot"}[signal]
	return n.Systemctl(ctx, verb)
}

// kill ends what runs of a boot, whatever state it is in.
func (n *Node) kill() {
	if n.boot.pid1 != 0 {
		_ = unix.Kill(n.boot.pid1, unix.SIGKILL)
	}
	if n.boot.process != nil {
		n.boot.process.Kill()
	}
}

// journal is what systemd is about and has said last, as far as it still answers.
func (n *Node) journal() string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := n.Exec(ctx, "sh", "-c", "systemctl --no-pager list-jobs; journalctl --no-pager --lines=30")
	if err != nil {
		return err.Error()
	}
	return out
}

// processes are the command lines of what runs on the node, as far as it can be read.
func (n *Node) processes() []string {
	var lines []string
	for _, pid := range lab.Processes(n.cgroup()) {
		cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		state, _ := os.ReadFile(fmt.Sprintf("/proc/%d/wchan", pid))
		lines = append(lines, fmt.Sprintf("%d %s (in %s)", pid, bytes.ReplaceAll(bytes.TrimRight(cmdline, "\x00"), []byte{0}, []byte{' '}), state))
	}
	return lines
}

// tidy removes what a boot that has ended leaves outside of the disk, and the mount of the disk.
func (n *Node) tidy(ctx context.Context) error {
	n.boot = nil
	var errs []error
	for _, h := range lab.Hierarchies() {
		errs = append(errs, lab.RemoveCgroup(filepath.Join(h.Mountpoint, n.cgroup())))
	}
	_, err := lab.Run(ctx, "ip", "netns", "del", n.netns())
	return errors.Join(append(errs, err, n.unmountDisk())...)
}
