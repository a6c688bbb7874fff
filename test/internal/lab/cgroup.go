package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A Hierarchy is one mounted cgroup tree: the only one on cgroup v2, one a
// controller group on v1.
type Hierarchy struct {
	Mountpoint string
	// Options mount the same tree again; empty for cgroup v2.
	Options string
}

// V2 says that the hierarchy is the unified one.
func (h Hierarchy) V2() bool { return h.Options == "" }

// Hierarchies are the cgroup trees of this machine.
func Hierarchies() []Hierarchy {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	return parseHierarchies(string(mounts))
}

// parseHierarchies keeps the first mount of each tree.
func parseHierarchies(mountinfo string) []Hierarchy {
	var found []Hierarchy
	for line := range strings.Lines(mountinfo) {
		head, tail, ok := strings.Cut(strings.TrimSpace(line), " - ")
		fields, fsFields := strings.Fields(head), strings.Fields(tail)
		if !ok || len(fields) < 5 || len(fsFields) < 3 {
			continue
		}
		h := Hierarchy{Mountpoint: fields[4]}
		switch fsFields[0] {
		case "cgroup":
			h.Options = v1Options(fsFields[2])
		case "cgroup2":
		default:
			continue
		}
		if !slices.ContainsFunc(found, func(f Hierarchy) bool { return f.Options == h.Options }) {
			found = append(found, h)
		}
	}
	return found
}

// v1Options drops the mount flags and options that do not name the tree.
func v1Options(super string) string {
	var names []string
	named := false
	for option := range strings.SplitSeq(super, ",") {
		switch option {
		case "rw", "ro", "xattr", "clone_children", "noprefix":
			continue
		}
		if strings.HasPrefix(option, "release_agent=") {
			continue
		}
		named = named || strings.HasPrefix(option, "name=")
		names = append(names, option)
	}
	if named {
		names = append([]string{"none"}, names...)
	}
	return strings.Join(names, ",")
}

// CreateCgroup makes folder path in the hierarchy, with all that the root has to
// give. On v2 a folder has the controllers that its parent hands on; a v1 cpuset
// takes no process before its cpus and memory nodes are set.
func (h Hierarchy) CreateCgroup(path string) error {
	dir := h.Mountpoint
	for part := range strings.SplitSeq(path, "/") {
		parent := dir
		dir = filepath.Join(dir, part)
		if h.V2() {
			if err := handOnControllers(parent); err != nil {
				return err
			}
		}
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if !slices.Contains(strings.Split(h.Options, ","), "cpuset") {
			continue
		}
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			value, err := os.ReadFile(filepath.Join(parent, file))
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, file), value, 0o644); err != nil {
				return fmt.Errorf("%s: %w", filepath.Join(dir, file), err)
			}
		}
	}
	return nil
}

// handOnControllers lets the children of a v2 folder use its controllers.
func handOnControllers(dir string) error {
	controllers, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for controller := range strings.FieldsSeq(string(controllers)) {
		file := filepath.Join(dir, "cgroup.subtree_control")
		if err := os.WriteFile(file, []byte("+"+controller), 0o644); err != nil {
			return fmt.Errorf("%s: controller %s: %w", file, controller, err)
		}
	}
	return nil
}

// RemoveCgroup kills what runs in the tree at dir and removes it, deepest first.
func RemoveCgroup(dir string) error {
	err := waitFor(10*time.Second, func() bool {
		dirs := tree(dir)
		for _, d := range dirs {
			killAll(d)
		}
		for _, d := range slices.Backward(dirs) {
			_ = os.Remove(d)
		}
		return len(tree(dir)) == 0
	})
	if err != nil {
		return fmt.Errorf("cgroup %s is still in use 10 s after its processes were killed", dir)
	}
	return nil
}

// tree lists dir and its folders, parents first.
func tree(dir string) []string {
	var dirs []string
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	return dirs
}

func killAll(dir string) {
	for _, pid := range processesIn(dir) {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// Processes are the process ids in folder path of the hierarchies and below, as the machine sees them.
func Processes(path string) []int {
	var all []int
	for _, h := range Hierarchies() {
		for _, dir := range tree(filepath.Join(h.Mountpoint, path)) {
			all = append(all, processesIn(dir)...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func processesIn(dir string) []int {
	content, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil
	}
	var pids []int
	for field := range strings.FieldsSeq(string(content)) {
		// 0 is a process that this PID namespace does not see.
		if pid, err := strconv.Atoi(field); err == nil && pid > 1 {
			pids = append(pids, pid)
		}
	}
	return pids
}
