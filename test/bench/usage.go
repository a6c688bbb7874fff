package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is the unit of times in /proc/PID/stat, the same on every Linux.
const ticksPerSecond = 100

// usage is what a process has used so far.
type usage struct {
	rss, written int64 // bytes
	cpu          time.Duration
}

// readUsage reads it from /proc.
func readUsage(pid int) (usage, error) {
	var u usage
	dir := fmt.Sprintf("/proc/%d/", pid)
	stat, err := os.ReadFile(dir + "stat")
	if err != nil {
		return u, err
	}
	// The program's name may hold anything; what follows its closing parenthesis is fixed.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	for _, field := range fields[11:13] { // utime, stime
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return u, fmt.Errorf("%sstat: %w", dir, err)
		}
		u.cpu += time.Duration(ticks) * time.Second / ticksPerSecond
	}
	kib, err := procField(dir+"status", "VmRSS:")
	if err != nil {
		return u, err
	}
	u.rss = kib << 10
	u.written, err = procField(dir+"io", "write_bytes:")
	return u, err
}

// procField reads the number after a name at the beginning of a line.
func procField(path, name string) (int64, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(content)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			fields := strings.Fields(rest)
			if len(fields) == 0 {
				break
			}
			return strconv.ParseInt(fields[0], 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no %s", path, name)
}
