package images

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWriteMakesAnArchiveWhoseDigestsHold(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "app")
	if err := os.WriteFile(binary, []byte("not really a program"), 0o755); err != nil {
		t.Fatal(err)
	}
	image := Image{Name: "example.com/app:1", Binary: binary, Args: []string{"-v"}, User: "65532:65532"}
	var archive, again bytes.Buffer
	for _, w := range []io.Writer{&archive, &again} {
		if err := image.Write(w); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(archive.Bytes(), again.Bytes()) {
		t.Error("the same image gives two different archives")
	}
	files := untar(t, &archive)

	var index struct{ Manifests []descriptor }
	decode(t, files["index.json"], &index)
	if got := index.Manifests[0].Annotations["io.containerd.image.name"]; got != image.Name {
		t.Errorf("image name = %q, want %q", got, image.Name)
	}
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	decode(t, blob(t, files, index.Manifests[0]), &manifest)
	var config struct {
		Config struct {
			Entrypoint []string
			User       string
		}
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	decode(t, blob(t, files, manifest.Config), &config)
	if diff := cmp.Diff([]string{"/app", "-v"}, config.Config.Entrypoint); diff != "" {
		t.Error(diff)
	}
	if config.Config.User != image.User {
		t.Errorf("user = %q, want %q", config.Config.User, image.User)
	}
	layer := blob(t, files, manifest.Layers[0])
	if got := config.RootFS.DiffIDs[0]; got != digest(layer) {
		t.Errorf("diff id = %s, want %s", got, digest(layer))
	}
	if got := string(untar(t, bytes.NewReader(layer))["app"]); got != "not really a program" {
		t.Errorf("content of /app = %q", got)
	}
}

func TestAnImageOfADirectoryHasItsFiles(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "bin/tool"), []byte("a tool"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("tool", filepath.Join(root, "bin/sh")); err != nil {
		t.Fatal(err)
	}
	p, err := Image{Name: "example.com/tools:1", Root: root, Args: []string{"sh"}}.parts("amd64")
	if err != nil {
		t.Fatal(err)
	}
	files := untar(t, bytes.NewReader(p.layer))
	if _, link := files["bin/sh"]; !link || string(files["bin/tool"]) != "a tool" {
		t.Errorf("files = %v", files)
	}
	if !strings.Contains(string(p.config), `"Entrypoint":["sh"]`) {
		t.Errorf("configuration = %s", p.config)
	}
}

func TestWriteNamesTheBinaryThatIsNotThere(t *testing.T) {
	err := Image{Name: "example.com/app:1", Binary: "/nowhere/app"}.Write(io.Discard)
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "/nowhere/app") {
		t.Errorf("error = %v", err)
	}
}

func blob(t *testing.T, files map[string][]byte, d descriptor) []byte {
	t.Helper()
	content := files["blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:")]
	if digest(content) != d.Digest || len(content) != d.Size {
		t.Fatalf("blob %s: digest %s, %d of %d bytes", d.Digest, digest(content), len(content), d.Size)
	}
	return content
}

func untar(t *testing.T, r io.Reader) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for archive := tar.NewReader(r); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}

func decode(t *testing.T, content []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(content, into); err != nil {
		t.Fatal(err)
	}
}
