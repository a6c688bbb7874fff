package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pidsDir holds one identity file a process, for the run that cleans up after us.
const pidsDir = "pids"

// A Process is a child that is recorded in the lab.
type Process struct {
	Name string
	// Log is the file that stdout and stderr are appended to.
	Log string

	cmd    *exec.Cmd
	record string
	done   chan struct{}
	err    error
}

// Start runs a command in a session of its own. It ends with Stop, Kill or the lab.
func (l *Lab) Start(name string, cmd *exec.Cmd) (*Process, error) {
	for _, dir := range []string{pidsDir, "logs"} {
		if err := os.MkdirAll(filepath.Join(l.Dir, dir), 0o755); err != nil {
			return nil, err
		}
	}
	p := &Process{
		Name: name, Log: filepath.Join(l.Dir, "logs", name+".log"),
		cmd: cmd, record: filepath.Join(l.Dir, pidsDir, name), done: make(chan struct{}),
	}
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if id, ok := identity(cmd.Process.Pid); ok {
		if err := os.WriteFile(p.record, []byte(id), 0o644); err != nil {
			_ = cmd.Process.Kill()
			return nil, err
		}
	}
	go func() {
		p.err = cmd.Wait()
		os.Remove(p.record)
		close(p.done)
	}()
	return p, nil
}

// PID is the process id as the host sees it.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is how the process ended, with the last lines it wrote; valid after Done.
func (p *Process) Err() error {
	<-p.done
	return fmt.Errorf("%s ended (%v); last lines of %s:\n%s", p.Name, p.cmd.ProcessState, p.Log, Tail(p.Log, 15))
}

// Kill ends the process at once.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// Stop asks the process to end and kills it after the grace period.
func (p *Process) Stop(grace time.Duration) {
	_ = p.cmd.Process.Signal(unix.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(grace):
		p.Kill()
	}
}

// Run runs a short command to its end; the error carries what it printed.
func Run(ctx context.Context, name string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		return text, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, text)
	}
	return text, nil
}

// Tail is the last lines of a file, or the reason why it cannot be read.
func Tail(file string, lines int) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
