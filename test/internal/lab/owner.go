package lab

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

const ownerFile = "owner"

// identity names a process so that a recycled pid, or one of an earlier boot of
// the machine, is not taken for it: boot id, pid, start time in clock ticks.
func identity(pid int) (string, bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", false
	}
	start, state, ok := parseStat(string(stat))
	if !ok || state == "Z" || state == "X" {
		return "", false
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", false
	}
	return fmt.Sprintf("%s %d %s", strings.TrimSpace(string(boot)), pid, start), true
}

func self() string {
	id, _ := identity(os.Getpid())
	return id
}

// alive says whether the process that identity named still runs, and its pid.
func alive(id string) (pid int, ok bool) {
	fields := strings.Fields(id)
	if len(fields) != 3 {
		return 0, false
	}
	pid, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0, false
	}
	now, ok := identity(pid)
	return pid, ok && now == strings.Join(fields, " ")
}

// parseStat reads state and start time of a /proc/PID/stat line. The command
// name in it may hold spaces and parentheses; the last ")" ends it.
func parseStat(stat string) (start, state string, ok bool) {
	end := strings.LastIndexByte(stat, ')')
	if end < 0 {
		return "", "", false
	}
	fields := strings.Fields(stat[end+1:])
	const stateField, startField = 0, 19
	if len(fields) <= startField {
		return "", "", false
	}
	return fields[startField], fields[stateField], true
}
