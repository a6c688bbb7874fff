package host

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is USER_HZ, the unit of times in /proc/PID/stat: 100 on every
// architecture that Linux has a stable user ABI for.
const ticksPerSecond = 100

// Files reads the files of the machine below a root directory.
type Files struct {
	// Root is "/" on a real node.
	Root string
}

// BootID is the random id that the kernel gave this boot.
func (f Files) BootID() (string, error) {
	path := filepath.Join(f.Root, "proc/sys/kernel/random/boot_id")
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading the boot id: %w", err)
	}
	id := strings.TrimSpace(string(data))
	if id == "" {
		return "", fmt.Errorf("%s is empty: is /proc mounted?", path)
	}
	return id, nil
}

// ProcessStart is when a process was started, as time since kernel start, exact to 10 ms.
// The kernel shifts it by the time namespace of the reader, like CLOCK_BOOTTIME.
func (f Files) ProcessStart(pid int) (time.Duration, error) {
	path := filepath.Join(f.Root, "proc", strconv.Itoa(pid), "stat")
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("reading the start time of process %d: %w", pid, err)
	}
	// The command name (field 2) is in parentheses and may hold anything, also ")".
	end := bytes.LastIndexByte(data, ')')
	if end < 0 {
		return 0, fmt.Errorf("%s: no command name", path)
	}
	const startTime = 22 - 3 // field 22, counted from field 3, the first after the name
	fields := strings.Fields(string(data[end+1:]))
	if len(fields) <= startTime {
		return 0, fmt.Errorf("%s: %d fields after the command name, want more than %d", path, len(fields), startTime)
	}
	ticks, err := strconv.ParseInt(fields[startTime], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: start time: %w", path, err)
	}
	return time.Duration(ticks) * (time.Second / ticksPerSecond), nil
}

// Command is the command name of a process, as the kernel has it: cut to 15 bytes.
func (f Files) Command(pid int) (string, error) {
	data, err := os.ReadFile(filepath.Join(f.Root, "proc", strconv.Itoa(pid), "comm"))
	if err != nil {
		return "", fmt.Errorf("reading the command of process %d: %w", pid, err)
	}
	return strings.TrimSpace(string(data)), nil
}

// FindProcess is the lowest process id with this command name, 0 if there is none.
func (f Files) FindProcess(command string) (int, error) {
	entries, err := os.ReadDir(filepath.Join(f.Root, "proc"))
	if err != nil {
		return 0, fmt.Errorf("listing processes: %w", err)
	}
	found := 0
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || (found != 0 && pid > found) {
			continue
		}
		// A process that ended meanwhile has no file any more.
		if comm, err := f.Command(pid); err == nil && comm == command {
			found = pid
		}
	}
	return found, nil
}
