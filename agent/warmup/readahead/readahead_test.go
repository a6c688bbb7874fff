package readahead

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

const page = 4096

func TestParts(t *testing.T) {
	pages := func(runs ...int) []byte { // absent, present, absent...
		var all []byte
		for i, n := range runs {
			all = append(all, bytes.Repeat([]byte{byte(i % 2)}, n)...)
		}
		return all
	}
	cases := map[string]struct {
		pages []byte
		size  int64
		want  []Range
	}{
		"nothing is in memory":                {pages: pages(3), size: 3 * page},
		"all of it is, the last page in part": {pages: pages(0, 3), size: 2*page + 1, want: []Range{{"f", 0, 2*page + 1}}},
		"a small gap is read as well":         {pages: pages(1, 1, 32, 1), size: 35 * page, want: []Range{{"f", page, 34 * page}}},
		"a large gap is not":                  {pages: pages(1, 1, 33, 1), size: 36 * page, want: []Range{{"f", page, page}, {"f", 35 * page, page}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, parts("f", tc.pages, page, tc.size)); diff != "" {
				t.Errorf("parts (-want +got):\n%s", diff)
			}
		})
	}
}

// disk is a directory whose files can be put out of memory, which those of a tmpfs cannot.
func disk(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "rekindle-readahead-")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func write(t *testing.T, path string, size int) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), size), 0o644); err != nil {
		t.Fatal(err)
	}
}

// forget puts a file out of memory.
func forget(t *testing.T, path string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	if len(resident(path)) > 0 {
		t.Skip("this file system keeps its pages")
	}
}

func TestWhatWasReadIsReadAhead(t *testing.T) {
	dir := disk(t)
	first, second, cold := filepath.Join(dir, "2/fs/app"), filepath.Join(dir, "1/fs/lib/x.so"), filepath.Join(dir, "1/fs/cold")
	for _, path := range []string{first, second, cold} {
		write(t, path, 40*page)
	}
	if err := os.Symlink(first, filepath.Join(dir, "1/fs/link")); err != nil {
		t.Fatal(err)
	}
	forget(t, cold)
	dirs := []string{filepath.Join(dir, "2/fs"), filepath.Join(dir, "1/fs"), filepath.Join(dir, "none")}
	want := []Range{{first, 0, 40 * page}, {second, 0, 40 * page}}
	learnt := Learn(context.Background(), dirs, 1<<30)
	if diff := cmp.Diff(want, learnt); diff != "" {
		t.Fatalf("learnt (-want +got):\n%s", diff)
	}
	if short := Learn(context.Background(), dirs, 50*page); len(short) != 2 || short[1].Length != 10*page {
		t.Errorf("within a budget %v", short)
	}
	kept := filepath.Join(dir, "readahead.json")
	if err := Save(kept, learnt); err != nil {
		t.Fatal(err)
	}
	forget(t, first)
	forget(t, second)
	ranges := append([]Range{{filepath.Join(dir, "gone"), 0, page}}, Load(kept)...)
	if asked := Ahead(context.Background(), ranges, 60*page); asked != 60*page {
		t.Errorf("asked for %d bytes", asked)
	}
	// The kernel reads on its own time.
	for range 1000 {
		if got := resident(first); len(got) == 1 && got[0].Length == 40*page {
			return
		}
		_, _ = os.ReadDir(dir)
	}
	t.Errorf("in memory: %v", resident(first))
}

func TestADamagedListIsNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "readahead.json")
	if got := Load(path); got != nil {
		t.Errorf("without a file %v", got)
	}
	if err := Save(path, []Range{{"/a", 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if got := Load(path); len(got) != 1 {
		t.Errorf("kept %v", got)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-5] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := Load(path); got != nil {
		t.Errorf("damaged %v", got)
	}
}
