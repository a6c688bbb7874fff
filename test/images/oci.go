package images

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// An Image is one static binary that runs as the entrypoint, or the files of a directory.
type Image struct {
	// Name is the full reference, e.g. example.com/app:1.
	Name string
	// Binary is the file on this machine; it lies in / of the image under its own name.
	Binary string
	// Root is a directory on this machine whose files are the image's, in the place of a binary.
	Root string
	// Args follow the binary. With Root they are the entrypoint.
	Args []string
	// User is UID or UID:GID; unset means root.
	User string
}

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// parts are the image's blobs.
type parts struct{ layer, config, manifest []byte }

// parts for an architecture.
func (i Image) parts(architecture string) (parts, error) {
	layer, err := i.layer()
	if err != nil {
		return parts{}, err
	}
	entrypoint := i.Args
	if i.Root == "" {
		entrypoint = append([]string{"/" + filepath.Base(i.Binary)}, i.Args...)
	}
	config, err := json.Marshal(map[string]any{
		"architecture": architecture, "os": "linux",
		"config": map[string]any{"Entrypoint": entrypoint, "User": i.User},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digest(layer)}},
	})
	if err != nil {
		return parts{}, err
	}
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": manifestType,
		"config": describe("application/vnd.oci.image.config.v1+json", config),
		"layers": []descriptor{describe("application/vnd.oci.image.layer.v1.tar", layer)},
	})
	return parts{layer, config, manifest}, err
}

const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	indexType    = "application/vnd.oci.image.index.v1+json"
)

// Write writes the image as an OCI archive: a tar of an OCI image layout.
func (i Image) Write(w io.Writer) error {
	p, err := i.parts(runtime.GOARCH)
	if err != nil {
		return err
	}
	entry := describe(manifestType, p.manifest)
	entry.Annotations = map[string]string{"io.containerd.image.name": i.Name}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": []descriptor{entry}})
	if err != nil {
		return err
	}
	archive := tar.NewWriter(w)
	for _, file := range []struct {
		name    string
		content []byte
	}{
		{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		{blobPath(p.layer), p.layer},
		{blobPath(p.config), p.config},
		{blobPath(p.manifest), p.manifest},
		{"index.json", index},
	} {
		if err := addFile(archive, file.name, 0o644, file.content); err != nil {
			return err
		}
	}
	return archive.Close()
}

func (i Image) layer() ([]byte, error) {
	var layer bytes.Buffer
	archive := tar.NewWriter(&layer)
	var err error
	if i.Root != "" {
		err = archive.AddFS(os.DirFS(i.Root))
	} else {
		var binary []byte
		if binary, err = os.ReadFile(i.Binary); err == nil {
			err = addFile(archive, filepath.Base(i.Binary), 0o755, binary)
		}
	}
	if err := errors.Join(err, archive.Close()); err != nil {
		return nil, fmt.Errorf("image %s: %w", i.Name, err)
	}
	return layer.Bytes(), nil
}

// addFile adds a file without times, so that the same content has the same digest.
func addFile(archive *tar.Writer, name string, mode int64, content []byte) error {
	header := &tar.Header{Name: name, Mode: mode, Size: int64(len(content)), Typeflag: tar.TypeReg, Format: tar.FormatPAX}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err := archive.Write(content)
	return err
}

func describe(mediaType string, content []byte) descriptor {
	return descriptor{MediaType: mediaType, Digest: digest(content), Size: len(content)}
}

func digest(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }

func blobPath(content []byte) string { return fmt.Sprintf("blobs/sha256/%x", sha256.Sum256(content)) }
