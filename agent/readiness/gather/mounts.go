package gather

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// mountTable is what is mounted, the deepest first.
type mountTable struct {
	mounts []mount
	fstab  map[string][]string // options by mount point
	units  map[string]bool     // names of mount units
}

type mount struct {
	point, kind string
	readOnly    bool
}

// read looks at the mounts as this process sees them: its own are read-only where systemd
// made them so, and only the file system's own options are believed.
func (t *mountTable) read(root string) {
	*t = mountTable{fstab: map[string][]string{}, units: map[string]bool{}}
	data, _ := os.ReadFile(root + "/proc/self/mountinfo")
	for line := range strings.Lines(string(data)) {
		before, after, ok := strings.Cut(line, " - ")
		fields, rest := strings.Fields(before), strings.Fields(after)
		if ok && len(fields) >= 5 && len(rest) >= 3 {
			t.mounts = append(t.mounts, mount{unescape(fields[4]), rest[0], slices.Contains(strings.Split(rest[2], ","), "ro")})
		}
	}
	slices.Reverse(t.mounts) // of mounts over one another the last counts
	slices.SortStableFunc(t.mounts, func(a, b mount) int { return len(b.point) - len(a.point) })
	data, _ = os.ReadFile(root + "/etc/fstab")
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) >= 4 && !strings.HasPrefix(fields[0], "#") {
			t.fstab[unescape(fields[1])] = strings.Split(fields[3], ",")
		}
	}
	for _, dir := range []string{systemdDir, "/usr/lib/systemd/system"} {
		units, _ := filepath.Glob(root + dir + "/*.mount") // the pattern is sound
		for _, unit := range units {
			t.units[filepath.Base(unit)] = true
		}
	}
}

// unescape undoes what mountinfo and fstab do to blanks.
func unescape(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\134`, `\`).Replace(path)
}

// of is the mount that a path is on.
func (t *mountTable) of(path string) mount {
	path = clean(path)
	for _, m := range t.mounts {
		if below(path, m.point) {
			return m
		}
	}
	return mount{}
}

func below(path, dir string) bool {
	return dir == "/" || path == dir || strings.HasPrefix(path, dir+"/")
}

// clean follows the one link that every system has.
func clean(path string) string {
	path = filepath.Clean(path)
	if path == "/var/run" || strings.HasPrefix(path, "/var/run/") {
		return strings.TrimPrefix(path, "/var")
	}
	return path
}

func (t *mountTable) readOnly(path string) bool { return t.of(path).readOnly }

// late says whether a path is on a disk that the boot does not wait for, or that nothing
// mounts at boot.
func (t *mountTable) late(path string) bool {
	options, listed, own := t.mounted(path)
	return own && (!listed || slices.ContainsFunc(options, func(option string) bool {
		return slices.Contains([]string{"nofail", "noauto", "_netdev", "x-systemd.automount"}, option)
	}))
}

// never says whether a path is on a disk that nothing mounts at boot.
func (t *mountTable) never(path string) bool {
	options, listed, own := t.mounted(path)
	return own && (!listed || slices.Contains(options, "noauto") && !slices.Contains(options, "x-systemd.automount"))
}

// mounted says how the disk of a path is mounted at boot: with which options, and whether
// anything does. A path of the root file system, or of none on a disk, is on no disk of its own.
func (t *mountTable) mounted(path string) (options []string, listed, own bool) {
	m := t.of(path)
	if m.point == "/" || m.point == "" || !onDisk[m.kind] {
		return nil, false, false
	}
	options, listed = t.fstab[m.point]
	unit := strings.ReplaceAll(strings.ReplaceAll(strings.Trim(m.point, "/"), "-", `\x2d`), "/", "-") + ".mount"
	return options, listed || t.units[unit], true
}

var onDisk = map[string]bool{"ext2": true, "ext3": true, "ext4": true, "xfs": true, "btrfs": true, "f2fs": true, "vfat": true, "exfat": true, "ntfs3": true, "nfs": true, "nfs4": true, "cifs": true}

// Places that the system itself fills again at every start.
var refilled = []string{"/run/containerd", "/run/crio", "/run/dbus", "/run/lock", "/run/log", "/run/netns", "/run/rekindle", "/run/systemd", "/run/udev", "/run/user", "/run/utmp", "/run/xtables.lock"}

// volatile says whether a restart empties a path and nothing known makes it again.
func (g *Gatherer) volatile(path string) bool {
	path = clean(path)
	m := g.mounts.of(path)
	if m.kind != "tmpfs" && m.kind != "ramfs" || path == m.point || strings.HasPrefix(path, "/dev/") && !strings.HasPrefix(path, "/dev/shm/") {
		return false
	}
	for _, dir := range append(g.madeAgain(), refilled...) {
		// The root of the file system is there again, and says nothing of what is in it.
		if dir != m.point && (below(path, dir) || below(dir, path)) {
			return false
		}
	}
	return true
}

// madeRefresh is how long the answer of madeAgain holds while no file comes or goes: it
// takes many.
const madeRefresh = time.Minute

// madeAgain are paths that tmpfiles.d or a service's RuntimeDirectory= makes at a start.
func (g *Gatherer) madeAgain() []string {
	tmpfiles, services := []string{"/etc/tmpfiles.d", "/run/tmpfiles.d", "/usr/lib/tmpfiles.d"}, []string{systemdDir, "/usr/lib/systemd/system"}
	var dirs []string
	for _, dir := range slices.Concat(tmpfiles, services) {
		dirs = append(dirs, g.Root+dir)
	}
	stamp := stampOf(dirs...)
	if age := g.Now().Sub(g.madeAt); age >= 0 && age < madeRefresh && stamp == g.madeStamp {
		return g.made
	}
	var made []string
	lines := func(pattern string, take func(fields []string, line string)) {
		files, _ := filepath.Glob(g.Root + pattern) // the pattern is sound
		for _, file := range files {
			data, _ := os.ReadFile(file)
			for line := range strings.Lines(string(data)) {
				take(strings.Fields(line), strings.TrimSpace(line))
			}
		}
	}
	for _, dir := range tmpfiles {
		lines(dir+"/*.conf", func(fields []string, _ string) {
			if len(fields) >= 2 && strings.ContainsAny(fields[0][:1], "fFdDvqQpLcbC") {
				made = append(made, clean(fields[1]))
			}
		})
	}
	for _, dir := range services {
		lines(dir+"/*.service", func(_ []string, line string) {
			if names, ok := strings.CutPrefix(line, "RuntimeDirectory="); ok {
				for _, name := range strings.Fields(names) {
					made = append(made, "/run/"+name)
				}
			}
		})
	}
	g.made, g.madeAt, g.madeStamp = made, g.Now(), stamp
	return made
}
