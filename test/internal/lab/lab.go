package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// maxLabs is how many /20 networks fit the range of network.go.
const maxLabs = 32

// keptFile marks a lab that outlives its owner until RemoveKept.
const keptFile = "kept"

// A Lab is one run's share of the machine.
type Lab struct {
	// Number is unique among the living labs, 0 to 31.
	Number int
	// Dir lies on the machine's disk and goes with the lab.
	Dir string

	mu   sync.Mutex
	kept bool
}

// Open removes labs whose owner is dead and claims a free number for this process.
func Open(ctx context.Context) (*Lab, error) {
	base, unlock, err := lockBase()
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := removeDead(ctx, base, false); err != nil {
		return nil, fmt.Errorf("removing what a dead run left: %w", err)
	}
	for number := range maxLabs {
		dir := filepath.Join(base, strconv.Itoa(number))
		err := os.Mkdir(dir, 0o755)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, ownerFile), []byte(self()), 0o644); err != nil {
			return nil, err
		}
		return &Lab{Number: number, Dir: dir}, nil
	}
	return nil, fmt.Errorf("%s: all %d labs are in use by living processes; stop one of them", base, maxLabs)
}

// Close removes everything of the lab, unless Keep was called.
func (l *Lab) Close() error {
	l.mu.Lock()
	kept := l.kept
	l.mu.Unlock()
	if kept {
		return nil
	}
	// A lab must go also when the test's context is already over.
	if err := release(context.Background(), l.Number, l.Dir); err != nil {
		return err
	}
	// The directory is the claim on the number: it goes under the lock, or another
	// Open could claim it while it is half removed.
	_, unlock, err := lockBase()
	if err != nil {
		return err
	}
	defer unlock()
	return os.RemoveAll(l.Dir)
}

// Keep leaves the lab running after Close and after the end of this process,
// until RemoveKept.
func (l *Lab) Keep() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = true
	return os.WriteFile(filepath.Join(l.Dir, keptFile), nil, 0o644)
}

// RemoveKept removes the labs that Keep left running, and those of dead owners.
func RemoveKept(ctx context.Context) error {
	base, unlock, err := lockBase()
	if err != nil {
		return err
	}
	defer unlock()
	return removeDead(ctx, base, true)
}

// NetNS is the name of one of the lab's network namespaces.
func (l *Lab) NetNS(name string) string { return netnsPrefix(l.Number) + name }

// CgroupName is the lab's folder in every cgroup hierarchy.
func (l *Lab) CgroupName() string { return cgroupName(l.Number) }

func netnsPrefix(number int) string { return fmt.Sprintf("rekindle%d-", number) }
func cgroupName(number int) string  { return fmt.Sprintf("rekindle-%d", number) }

// lockBase takes the machine-wide lock under which labs are claimed and removed.
func lockBase() (base string, unlock func(), err error) {
	base = filepath.Join("/var/tmp", fmt.Sprintf("rekindle-test-%d", os.Getuid()))
	if err := os.MkdirAll(base, 0o755); err != nil {
		return "", nil, err
	}
	lock, err := os.OpenFile(filepath.Join(base, "lock"), os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return "", nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		lock.Close()
		return "", nil, fmt.Errorf("%s: %w", lock.Name(), err)
	}
	return base, func() { lock.Close() }, nil
}
