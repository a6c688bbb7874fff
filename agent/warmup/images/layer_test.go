package images

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	contentapi "github.com/containerd/containerd/api/services/content/v1"
	"github.com/google/go-cmp/cmp"
)

// archive is a layer: a directory with a program, a link to it, a hard link and a whiteout.
func archive(t *testing.T, extra ...tar.Header) []byte {
	t.Helper()
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	uid, gid := os.Geteuid(), os.Getegid()
	headers := append([]tar.Header{
		{Name: "usr/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "usr/bin/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "usr/bin/app", Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(program))},
		{Name: "usr/bin/empty", Typeflag: tar.TypeReg, Mode: 0o644},
		{Name: "usr/bin/same", Typeflag: tar.TypeLink, Linkname: "usr/bin/app", Mode: 0o755},
		{Name: "usr/app", Typeflag: tar.TypeSymlink, Linkname: "bin/app", Mode: 0o777},
		{Name: "etc/.wh.passwd", Typeflag: tar.TypeReg, Mode: 0o644},
	}, extra...)
	for _, h := range headers {
		h.Uid, h.Gid = uid, gid
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg && h.Size > 0 {
			if _, err := io.WriteString(w, program[:h.Size]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

var program = strings.Repeat("a program ", 20000)

// unpack is what the runtime has made of archive.
func unpack(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, "usr/bin"), 0o755),
		os.WriteFile(filepath.Join(dir, "usr/bin/app"), []byte(program), 0o755),
		os.WriteFile(filepath.Join(dir, "usr/bin/empty"), nil, 0o644),
		os.Link(filepath.Join(dir, "usr/bin/app"), filepath.Join(dir, "usr/bin/same")),
		os.Symlink("bin/app", filepath.Join(dir, "usr/app")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// served is a blob as the runtime gives it, under the digest of want.
func served(content, want []byte) opener {
	return func() (io.ReadCloser, error) {
		rest := content
		sum := sha256.Sum256(want)
		return &blobReader{
			recv: func() (*contentapi.ReadContentResponse, error) {
				if len(rest) == 0 {
					return nil, io.EOF
				}
				n := min(len(rest), 10000)
				data := rest[:n]
				rest = rest[n:]
				return &contentapi.ReadContentResponse{Data: data}, nil
			},
			cancel: func() {}, sum: sha256.New(), want: "sha256:" + hex.EncodeToString(sum[:]),
		}, nil
	}
}

func compressed(t *testing.T, content []byte) []byte {
	t.Helper()
	var buffer bytes.Buffer
	w := gzip.NewWriter(&buffer)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func TestDamageIsFoundAndMended(t *testing.T) {
	at := func(dir string) string { return filepath.Join(dir, "usr/bin/app") }
	cases := map[string]struct {
		damage func(dir string) error
		want   []string
	}{
		"a layer that is whole": {damage: func(string) error { return nil }},
		"a file that is empty":  {func(dir string) error { return os.Truncate(at(dir), 0) }, []string{"usr/bin/app"}},
		"a file of zeros": {func(dir string) error { return rewrite(at(dir), make([]byte, len(program))) },
			[]string{"usr/bin/app"}},
		"a file with one page of zeros": {func(dir string) error {
			return rewrite(at(dir), []byte(program[:8192]+string(make([]byte, 4096))+program[12288:]))
		}, []string{"usr/bin/app"}},
		"a file that is too long": {func(dir string) error { return rewrite(at(dir), []byte(program+"x")) }, []string{"usr/bin/app"}},
		"files that are not there": {func(dir string) error { return os.RemoveAll(filepath.Join(dir, "usr")) },
			[]string{"usr", "usr/app", "usr/bin", "usr/bin/app", "usr/bin/empty", "usr/bin/same"}},
		"a link that is not there": {func(dir string) error { return os.Remove(filepath.Join(dir, "usr/app")) }, []string{"usr/app"}},
	}
	for name, tc := range cases {
		for form, blob := range map[string][]byte{"plain": archive(t), "gzip": compressed(t, archive(t))} {
			t.Run(name+", "+form, func(t *testing.T) {
				dir := unpack(t)
				if err := tc.damage(dir); err != nil {
					t.Fatal(err)
				}
				tree, err := openTree([]string{dir})
				if err != nil {
					t.Fatal(err)
				}
				defer tree.close()
				open := served(blob, blob)
				found, err := damagedIn(tree, open)
				if diff := cmp.Diff(tc.want, found); diff != "" || err != nil {
					t.Fatalf("damage %v (-want +got):\n%s", err, diff)
				}
				if err := mend(tree, open, found); err != nil {
					t.Fatal(err)
				}
				if left, err := damagedIn(tree, open); len(left) > 0 || err != nil {
					t.Errorf("left %v, %v", left, err)
				}
				if info, err := os.Stat(at(dir)); err != nil || info.Mode().Perm() != 0o755 {
					t.Errorf("mode %v, %v", info.Mode(), err)
				}
			})
		}
	}
}

func rewrite(path string, content []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Close())
}

func TestABlobIsCheckedBeforeItIsBelieved(t *testing.T) {
	blob := compressed(t, archive(t))
	zeroed := make([]byte, len(blob))
	flipped := bytes.Clone(blob)
	flipped[len(flipped)/2] ^= 1
	for name, content := range map[string][]byte{"zeroed": zeroed, "flipped": flipped, "cut": blob[:len(blob)-10], "empty": nil} {
		tree, err := openTree([]string{unpack(t)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := damagedIn(tree, served(content, blob)); !errors.Is(err, errContent) {
			t.Errorf("%s: error %v", name, err)
		}
		tree.close()
	}
}

func TestALayerThatCannotBeRead(t *testing.T) {
	zstd := append([]byte{0x28, 0xb5, 0x2f, 0xfd}, "whatever"...)
	tree, err := openTree([]string{unpack(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.close()
	if _, err := damagedIn(tree, served(zstd, zstd)); !errors.Is(err, errUnchecked) {
		t.Errorf("zstd: %v", err)
	}
	if _, err := damagedIn(tree, served(make([]byte, 12), zstd)); !errors.Is(err, errContent) {
		t.Errorf("zeroed zstd: %v", err)
	}
}

func TestAFileBehindALinkOfALayerBelow(t *testing.T) {
	below, dir := t.TempDir(), t.TempDir()
	for _, err := range []error{
		os.MkdirAll(filepath.Join(below, "usr/lib"), 0o755), os.Symlink("usr/lib", filepath.Join(below, "lib")),
		os.Symlink("/lib/../lib", filepath.Join(below, "lib64")),
		os.MkdirAll(filepath.Join(dir, "usr/lib"), 0o755), os.WriteFile(filepath.Join(dir, "usr/lib/x.so"), []byte(program[:100]), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	tree, err := openTree([]string{dir, below})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.close()
	for _, name := range []string{"lib/x.so", "./lib64/x.so", "/usr/lib/x.so"} {
		if got := tree.place(name); got != "usr/lib/x.so" {
			t.Errorf("%s lies at %s", name, got)
		}
	}
}

func TestWhatAnImageMayNotReach(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "shadow")
	if err := os.WriteFile(outside, []byte("root"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := unpack(t)
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	blob := archive(t, tar.Header{Name: "out/shadow", Typeflag: tar.TypeReg, Mode: 0o644, Size: 50},
		tar.Header{Name: "../../../../../.." + outside, Typeflag: tar.TypeReg, Mode: 0o644, Size: 50})
	tree, err := openTree([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.close()
	found, err := damagedIn(tree, served(blob, blob))
	if err != nil {
		t.Fatal(err)
	}
	_ = mend(tree, served(blob, blob), found)
	if content, err := os.ReadFile(outside); err != nil || string(content) != "root" {
		t.Errorf("outside of the layer: %q, %v", content, err)
	}
}

func TestFilesWithRightsOfTheirOwnAreNotWritten(t *testing.T) {
	blob := archive(t, tar.Header{Name: "usr/bin/su", Typeflag: tar.TypeReg, Mode: 0o4755, Size: 50})
	tree, err := openTree([]string{unpack(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.close()
	open := served(blob, blob)
	found, err := damagedIn(tree, open)
	if err != nil || len(found) != 1 {
		t.Fatalf("found %v, %v", found, err)
	}
	if err := mend(tree, open, found); !errors.Is(err, errMarks) {
		t.Errorf("error %v", err)
	}
}

func TestChainIDs(t *testing.T) {
	// Of the specification's formula, computed with sha256sum.
	got := chainIDs([]string{"sha256:a", "sha256:b"})
	want := sha256.Sum256([]byte("sha256:a sha256:b"))
	if got[0] != "sha256:a" || got[1] != "sha256:"+hex.EncodeToString(want[:]) {
		t.Errorf("chain ids %v", got)
	}
}
