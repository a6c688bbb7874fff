package lab

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestParseStat(t *testing.T) {
	after := " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 19 20"
	for name, tc := range map[string]struct {
		stat, wantStart string
		wantOK          bool
	}{
		"a plain command":                     {"7 (sh)" + after, "4242", true},
		"a command with spaces and brackets":  {"7 (a) b (c)" + after, "4242", true},
		"a line that is cut off":              {"7 (sh) S 1 2", "", false},
		"no line at all, of a process so new": {"", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			start, _, ok := parseStat(tc.stat)
			if start != tc.wantStart || ok != tc.wantOK {
				t.Errorf("parseStat() = %q, %v; want %q, %v", start, ok, tc.wantStart, tc.wantOK)
			}
		})
	}
}

func TestAlive(t *testing.T) {
	me := self()
	if pid, ok := alive(me + "\n"); !ok || pid != os.Getpid() {
		t.Errorf("alive(self) = %d, %v; want %d, true", pid, ok, os.Getpid())
	}
	fields := strings.Fields(me)
	for name, id := range map[string]string{
		"a process of another boot of the machine": fmt.Sprintf("other %s %s", fields[1], fields[2]),
		"another process with the same pid":        fmt.Sprintf("%s %s 1", fields[0], fields[1]),
		"a record that was cut off":                fields[0],
		"an empty record":                          "",
	} {
		t.Run(name, func(t *testing.T) {
			if _, ok := alive(id); ok {
				t.Errorf("alive(%q) = true", id)
			}
		})
	}

	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	id, ok := identity(child.Process.Pid)
	if !ok {
		t.Fatal("a living child has no identity")
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// The child is a zombie until it is waited for, and dead all the same.
	if err := waitFor(startLimit, func() bool { _, ok := alive(id); return !ok }); err != nil {
		t.Error("a killed child counts as alive")
	}
	_ = child.Wait()
}
