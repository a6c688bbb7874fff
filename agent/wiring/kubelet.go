package wiring

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Units asks the service manager.
type Units interface {
	// MainPID is the main process of a service, 0 when it has none.
	MainPID(ctx context.Context, unit string) (int, error)
}

// Service is kubelet as a service of systemd.
type Service struct {
	Unit  string
	Units Units
}

// Process implements Kubelet.
func (s Service) Process(ctx context.Context) (int, []string, error) {
	pid, err := s.Units.MainPID(ctx, s.Unit)
	if err != nil || pid == 0 {
		return 0, nil, err
	}
	cmdline, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil, nil // ended meanwhile
	}
	if err != nil {
		return 0, nil, err
	}
	return pid, strings.Split(strings.TrimSuffix(string(cmdline), "\x00"), "\x00"), nil
}

// Restart implements Kubelet. Units are loaded anew first: a generator that failed at boot
// has another chance.
func (s Service) Restart(ctx context.Context) error {
	for _, args := range [][]string{{"daemon-reload"}, {"try-restart", "--no-block", s.Unit}} {
		if output, err := exec.CommandContext(ctx, "systemctl", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("systemctl %s: %w: %s", strings.Join(args, " "), err, output)
		}
	}
	return nil
}
