package install

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// tree describes every file below root: mode, content or target, and the time of files.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		text := info.Mode().String()
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			text += " -> " + target
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += " " + info.ModTime().UTC().Format(time.RFC3339Nano) + " " + string(data)
		}
		files[name] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func makeFile(t *testing.T, path, content string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	past := time.Date(2024, 1, 2, 3, 4, 5, 6, time.UTC)
	if err := os.Chtimes(path, past, past); err != nil {
		t.Fatal(err)
	}
}

func TestRestore(t *testing.T) {
	write := func(path, content string) func(*testing.T, string) {
		return func(t *testing.T, root string) {
			t.Helper()
			if err := (file{path: path, mode: 0o644, data: []byte(content)}).write(root); err != nil {
				t.Fatal(err)
			}
		}
	}
	tests := map[string]struct {
		before func(t *testing.T, root string)
		paths  []string
		change func(t *testing.T, root string)
		// stays is what somebody else made meanwhile.
		stays []string
	}{
		"a new file in new directories goes with them": {
			paths:  []string{"/etc/a/b/new"},
			change: write("/etc/a/b/new", "x"),
		},
		"a new file in a directory that was there goes alone": {
			before: func(t *testing.T, root string) { makeFile(t, filepath.Join(root, "etc/other"), "o", 0o600) },
			paths:  []string{"/etc/new"},
			change: write("/etc/new", "x"),
		},
		"a new directory that others use by now stays": {
			paths: []string{"/etc/a/new"},
			change: func(t *testing.T, root string) {
				write("/etc/a/new", "x")(t, root)
				makeFile(t, filepath.Join(root, "etc/a/theirs"), "t", 0o600)
			},
			stays: []string{"etc", "etc/a", "etc/a/theirs"},
		},
		"an old file has its content, mode and time again": {
			before: func(t *testing.T, root string) { makeFile(t, filepath.Join(root, "etc/unit"), "old", 0o640) },
			paths:  []string{"/etc/unit"},
			change: write("/etc/unit", "new"),
		},
		"a file that was not changed is not touched": {
			before: func(t *testing.T, root string) { makeFile(t, filepath.Join(root, "etc/unit"), "old", 0o640) },
			paths:  []string{"/etc/unit"},
			change: func(*testing.T, string) {},
		},
		"a symbolic link points where it did": {
			before: func(t *testing.T, root string) {
				makeFile(t, filepath.Join(root, "etc/x"), "x", 0o600)
				if err := os.Symlink("x", filepath.Join(root, "etc/link")); err != nil {
					t.Fatal(err)
				}
			},
			paths: []string{"/etc/link"},
			change: func(t *testing.T, root string) {
				if err := (file{path: "/etc/link", link: "/elsewhere"}).write(root); err != nil {
					t.Fatal(err)
				}
			},
		},
		"a file that was removed is back": {
			before: func(t *testing.T, root string) { makeFile(t, filepath.Join(root, "etc/unit"), "old", 0o640) },
			paths:  []string{"/etc/unit"},
			change: func(t *testing.T, root string) {
				if err := os.Remove(filepath.Join(root, "etc/unit")); err != nil {
					t.Fatal(err)
				}
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			root, dir := t.TempDir(), filepath.Join(t.TempDir(), "saved")
			if tc.before != nil {
				tc.before(t, root)
			}
			want := tree(t, root)
			if _, err := save(root, dir, tc.paths); err != nil {
				t.Fatal(err)
			}
			tc.change(t, root)
			for range 2 { // also after an interruption
				s, err := openSaved(root, dir)
				if err != nil || s == nil {
					t.Fatal(s, err)
				}
				if err := s.restore(); err != nil {
					t.Fatal(err)
				}
			}
			got := tree(t, root)
			for _, path := range tc.stays {
				if got[path] == "" {
					t.Errorf("%s is gone", path)
				}
				delete(got, path)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSavedOfANewerAgentIsRefused(t *testing.T) {
	dir := t.TempDir()
	makeFile(t, filepath.Join(dir, indexFile), `{"version": 2}`, 0o600)
	if _, err := openSaved("/", dir); err == nil {
		t.Error("read")
	}
}
