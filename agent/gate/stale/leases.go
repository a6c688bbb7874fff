package stale

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"
)

// A lease is a file of host-local: its name is an address, its content whose it is.
type lease struct {
	Path    string `json:"path"`
	Content string `json:"content"`

	address netip.Addr
	// sandbox is empty for a file that lost its content in a power cut. Nobody's stop ever
	// removes one, and its address is not given out again.
	sandbox string
}

// readLeases reads a directory of host-local.
func readLeases(dir string) ([]lease, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var leases []lease
	for _, entry := range entries {
		address, err := netip.ParseAddr(entry.Name())
		if err != nil {
			continue // its lock, or the address it gave out last
		}
		path := filepath.Join(dir, entry.Name())
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // released meanwhile
		}
		if err != nil {
			return nil, err
		}
		sandbox, _, _ := strings.Cut(strings.TrimSpace(strings.Trim(string(content), "\x00")), "\n")
		leases = append(leases, lease{Path: path, Content: string(content), address: address, sandbox: strings.TrimSpace(sandbox)})
	}
	return leases, nil
}

// sandboxID is an id as the runtime makes them.
var sandboxID = regexp.MustCompile(`^[0-9a-f]{64}$`)

// orphans are the leases that belong to no sandbox. It must be called before the first
// sandbox of this boot is made: afterwards one may hold a lease that is not listed yet.
func orphans(leases []lease, listed map[string]bool) []lease {
	var found []lease
	for _, l := range leases {
		if l.sandbox == "" || sandboxID.MatchString(l.sandbox) && !listed[l.sandbox] {
			found = append(found, l)
		}
	}
	return found
}

// release removes leases that are still what they were, under host-local's own lock. It
// gives how many.
func release(leases []lease) (int, error) {
	count := 0
	byDir := map[string][]lease{}
	for _, l := range leases {
		byDir[filepath.Dir(l.Path)] = append(byDir[filepath.Dir(l.Path)], l)
	}
	var errs []error
	for dir, leases := range byDir {
		n, err := releaseIn(dir, leases)
		count += n
		if err != nil {
			errs = append(errs, err)
		}
	}
	return count, errors.Join(errs...)
}

func releaseIn(dir string, leases []lease) (int, error) {
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return 0, fmt.Errorf("locking the leases of host-local: %w", err)
	}
	defer lock.Close() //nolint:errcheck // nothing was written to it
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return 0, fmt.Errorf("locking the leases of host-local: %s: %w", lock.Name(), err)
	}
	count := 0
	for _, l := range leases {
		content, err := os.ReadFile(l.Path)
		if err != nil || string(content) != l.Content {
			continue
		}
		if err := os.Remove(l.Path); err != nil {
			return count, err
		}
		count++
	}
	return count, nil
}
