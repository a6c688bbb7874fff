package nodefiles

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	testclock "k8s.io/utils/clock/testing"
)

const subnet = "/run/flannel/subnet.env"

// machine is a node's root directory, and what is kept of it.
type machine struct {
	*testing.T
	root, dir string
	clock     *testclock.FakeClock
}

func newMachine(t *testing.T) *machine {
	m := &machine{t, t.TempDir(), t.TempDir(), testclock.NewFakeClock(time.Unix(0, 0))}
	for _, root := range roots {
		m.must(os.MkdirAll(filepath.Join(m.root, root), 0o755))
	}
	return m
}

func (m *machine) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

func (m *machine) keeper() *Keeper {
	k := New(m.dir, m.root, m.clock, nil)
	k.label = "user.label"
	return k
}

func (m *machine) path(file string) string { return filepath.Join(m.root, file) }

func (m *machine) write(file, content string) {
	m.Helper()
	m.must(os.MkdirAll(filepath.Dir(m.path(file)), 0o755))
	m.must(os.WriteFile(m.path(file), []byte(content), 0o644))
}

func (m *machine) read(file string) string {
	data, err := os.ReadFile(m.path(file))
	if err != nil {
		return err.Error()[strings.LastIndex(err.Error(), ": ")+2:]
	}
	return string(data)
}

// keep lets a keeper see the files until it has kept them.
func (m *machine) keep(files ...string) *Keeper {
	k := m.keeper()
	k.pass(context.Background(), files)
	k.pass(context.Background(), files)
	return k
}

// reboot loses what is on tmpfs.
func (m *machine) reboot() {
	m.must(os.RemoveAll(m.path("/run")))
	m.must(os.Mkdir(m.path("/run"), 0o755))
}

const absent = "no such file or directory"

func TestRestore(t *testing.T) {
	const conf = "/etc/cni/net.d/10-pods.conflist"
	cases := map[string]struct {
		before func(*machine)
		files  []string
		want   map[string]string
		put    []string
	}{
		"a file that the restart lost is put back": {
			before: func(m *machine) { m.write(subnet, "old"); m.keep(subnet); m.reboot() },
			files:  []string{subnet}, put: []string{subnet}, want: map[string]string{subnet: "old"},
		},
		"a file that was made in this boot stays": {
			before: func(m *machine) { m.write(subnet, "old"); m.keep(subnet); m.reboot(); m.write(subnet, "new") },
			files:  []string{subnet}, want: map[string]string{subnet: "new"},
		},
		"an empty file that was made in this boot stays": {
			before: func(m *machine) { m.write(subnet, "old"); m.keep(subnet); m.reboot(); m.write(subnet, "") },
			files:  []string{subnet}, want: map[string]string{subnet: ""},
		},
		"a file on the disk that has changed since stays": {
			before: func(m *machine) { m.write(conf, "old"); m.keep(conf); m.write(conf, "new") },
			files:  []string{conf}, want: map[string]string{conf: "new"},
		},
		"a file on the disk that the power cut emptied is put back": {
			before: func(m *machine) {
				m.write(conf, "old")
				m.keep(conf)
				info, err := os.Stat(m.path(conf))
				m.must(err)
				m.must(os.Truncate(m.path(conf), 0))
				m.must(os.Chtimes(m.path(conf), info.ModTime(), info.ModTime()))
			},
			files: []string{conf}, put: []string{conf}, want: map[string]string{conf: "old"},
		},
		"a file that was never kept is not made": {
			before: func(m *machine) { m.reboot() },
			files:  []string{subnet}, want: map[string]string{subnet: absent},
		},
		"a copy that is damaged is as good as none": {
			before: func(m *machine) {
				m.write(subnet, "old")
				m.keep(subnet)
				m.reboot()
				copied := filepath.Join(m.dir, fileName(subnet))
				data, err := os.ReadFile(copied)
				m.must(err)
				data[len(data)-3] ^= 1
				m.must(os.WriteFile(copied, data, 0o600))
			},
			files: []string{subnet}, want: map[string]string{subnet: absent},
		},
		"a link in the place of the directory is not followed": {
			before: func(m *machine) {
				m.write(subnet, "old")
				m.keep(subnet)
				m.reboot()
				m.must(os.Mkdir(m.path("/elsewhere"), 0o755))
				m.must(os.Symlink(m.path("/elsewhere"), m.path("/run/flannel")))
			},
			files: []string{subnet}, want: map[string]string{"/elsewhere/subnet.env": absent},
		},
		"a link in the place of the file is not followed": {
			before: func(m *machine) {
				m.write(subnet, "old")
				m.keep(subnet)
				m.write(subnet, "")
				m.must(os.Remove(m.path(subnet)))
				m.write("/elsewhere", "mine")
				m.must(os.Symlink(m.path("/elsewhere"), m.path(subnet)))
			},
			files: []string{subnet}, want: map[string]string{"/elsewhere": "mine"},
		},
		"a file outside of the allowed roots is not put": {
			before: func(m *machine) {
				m.must(store(m.dir, kept{Path: "/etc/shadow", Mode: 0o644, Content: []byte("x")}))
				m.must(store(m.dir, kept{Path: "/run/../etc/shadow", Mode: 0o644, Content: []byte("x")}))
				m.must(store(m.dir, kept{Path: "/run/systemd/x", Mode: 0o644, Content: []byte("x")}))
			},
			files: []string{"/etc/shadow", "/run/../etc/shadow", "/run/systemd/x"},
			want:  map[string]string{"/etc/shadow": absent, "/run/systemd/x": absent},
		},
		"what a killed agent left half written is replaced": {
			before: func(m *machine) {
				m.write(subnet, "old")
				m.keep(subnet)
				m.reboot()
				m.write("/run/flannel/.subnet.env.rekindle", "ol")
			},
			files: []string{subnet}, put: []string{subnet}, want: map[string]string{subnet: "old", "/run/flannel/.subnet.env.rekindle": absent},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			tc.before(m)
			put := m.keeper().Restore(context.Background(), tc.files)
			if diff := cmp.Diff(tc.put, put); diff != "" {
				t.Errorf("put back (-want +got):\n%s", diff)
			}
			for file, want := range tc.want {
				if got := m.read(file); got != want {
					t.Errorf("%s: %q, want %q", file, got, want)
				}
			}
		})
	}
}

func TestMarksOfAFileComeBack(t *testing.T) {
	m := newMachine(t)
	m.write(subnet, "old")
	m.must(os.Chmod(m.path(subnet), 0o640))
	labelled := unix.Setxattr(m.path(subnet), "user.label", []byte("flannel_t"), 0) == nil
	owner := os.Geteuid()
	if owner == 0 {
		owner = 4321
		m.must(os.Chown(m.path(subnet), owner, owner))
	}
	before, err := os.Stat(m.path(subnet))
	m.must(err)
	m.keep(subnet)
	m.reboot()
	m.keeper().Restore(context.Background(), []string{subnet})

	var got unix.Stat_t
	m.must(unix.Stat(m.path(subnet), &got))
	if got.Mode&0o777 != 0o640 || int(got.Uid) != owner || got.Mtim.Nano() != before.ModTime().UnixNano() {
		t.Errorf("mode %o, owner %d, modified %d", got.Mode&0o777, got.Uid, got.Mtim.Nano())
	}
	if labelled {
		label := make([]byte, 64)
		n, err := unix.Getxattr(m.path(subnet), "user.label", label)
		if err != nil || string(label[:n]) != "flannel_t" {
			t.Errorf("label %q, %v", label[:max(n, 0)], err)
		}
	}
	copied, err := os.Stat(filepath.Join(m.dir, fileName(subnet)))
	m.must(err)
	if copied.Mode().Perm() != 0o600 {
		t.Errorf("the copy has mode %o", copied.Mode().Perm())
	}
}

func TestKeep(t *testing.T) {
	ctx := context.Background()
	files := []string{subnet}
	cases := map[string]struct {
		do   func(*machine, *Keeper)
		want string // content of the copy; empty: none
	}{
		"a file is kept when two looks saw the same": {
			do: func(m *machine, k *Keeper) { k.pass(ctx, files) }, want: "one",
		},
		"a file that changes is kept anew": {
			do: func(m *machine, k *Keeper) {
				k.pass(ctx, files)
				m.write(subnet, "second")
				k.pass(ctx, files)
				k.pass(ctx, files)
			},
			want: "second",
		},
		"a file that is being written is not kept yet": {
			do: func(m *machine, k *Keeper) { m.write(subnet, "one and a half"); k.pass(ctx, files) },
		},
		"a file that is gone for less than a minute stays kept": {
			do: func(m *machine, k *Keeper) {
				k.pass(ctx, files)
				m.must(os.Remove(m.path(subnet)))
				k.pass(ctx, files)
				m.clock.Step(goneFor - time.Second)
				k.pass(ctx, files)
			},
			want: "one",
		},
		"a file that is gone for a minute is dropped": {
			do: func(m *machine, k *Keeper) {
				k.pass(ctx, files)
				m.must(os.Remove(m.path(subnet)))
				k.pass(ctx, files)
				m.clock.Step(goneFor)
				k.pass(ctx, files)
			},
		},
		"a file that the boot lost and nobody put back stays kept": {
			do: func(m *machine, k *Keeper) {
				k.pass(ctx, files)
				m.reboot()
				again := m.keeper()
				again.pass(ctx, files)
				m.clock.Step(2 * goneFor)
				again.pass(ctx, files)
			},
			want: "one",
		},
		"a file that is not wanted any more is dropped": {
			do: func(m *machine, k *Keeper) { k.pass(ctx, files); k.pass(ctx, nil) },
		},
		"a copy of an earlier run that nobody wants is dropped": {
			do: func(m *machine, k *Keeper) { k.pass(ctx, files); m.keeper().pass(ctx, nil) },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.write(subnet, "one")
			k := m.keeper()
			k.pass(ctx, files)
			tc.do(m, k)
			copied, _, err := load(m.dir, subnet)
			if err != nil || string(copied.Content) != tc.want {
				t.Errorf("copy %q, %v, want %q", copied.Content, err, tc.want)
			}
		})
	}
}

func TestWhatIsNotKeptIsTold(t *testing.T) {
	cases := map[string]struct {
		file string
		make func(*machine)
		want string
	}{
		"a file that is too large": {subnet, func(m *machine) { m.write(subnet, strings.Repeat("x", maxSize+1)) }, "more than 65536 bytes"},
		"a directory":              {"/run/flannel", func(m *machine) { m.write(subnet, "") }, "no regular file"},
		"a pipe":                   {"/run/pipe", func(m *machine) { m.must(unix.Mkfifo(m.path("/run/pipe"), 0o600)) }, "no regular file"},
		"a link":                   {"/run/link", func(m *machine) { m.must(os.Symlink("/etc/shadow", m.path("/run/link"))) }, "no regular file"},
		"a file behind a link": {subnet, func(m *machine) {
			m.must(os.Symlink("/etc", m.path("/run/flannel")))
		}, "symbolic link"},
		"a hidden file":      {"/run/.hidden", func(*machine) {}, "may not be kept"},
		"a file of systemd":  {"/run/systemd/notify", func(*machine) {}, "may not be kept"},
		"a file of the host": {"/etc/shadow", func(*machine) {}, "may not be kept"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			tc.make(m)
			k := m.keep(tc.file)
			if got := k.Problems()[tc.file]; !strings.Contains(got, tc.want) {
				t.Errorf("problem %q, want %q in it", got, tc.want)
			}
		})
	}
}
