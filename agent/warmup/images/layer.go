package images

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// whiteout begins the name of what a layer hides of those below.
const whiteout = ".wh."

// opener gives a layer's blob anew.
type opener func() (io.ReadCloser, error)

// entries calls do for each entry of a layer's tar. The whole blob is read, so that its
// digest is checked; an error of the digest comes before what do has returned.
func entriesOf(open opener, do func(*tar.Header, io.Reader) error) error {
	blob, err := open()
	if err != nil {
		return err
	}
	defer func() { _ = blob.Close() }()
	buffered := bufio.NewReaderSize(blob, 1<<16)
	unpacking, err := decompress(buffered)
	if err == nil {
		archive := tar.NewReader(unpacking)
		for {
			var header *tar.Header
			if header, err = archive.Next(); err != nil {
				if errors.Is(err, io.EOF) {
					err = nil
				}
				break
			}
			if err = do(header, archive); err != nil {
				break
			}
		}
	}
	if digestErr := drain(buffered); digestErr != nil {
		return digestErr
	}
	return err
}

func decompress(r *bufio.Reader) (io.Reader, error) {
	head, err := r.Peek(4)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errContent, err)
	}
	switch {
	case head[0] == 0x1f && head[1] == 0x8b:
		return gzip.NewReader(r)
	case bytes.Equal(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return nil, fmt.Errorf("%w: zstd", errUnchecked)
	}
	return r, nil
}

// tree is the directory of a layer, and those of the layers below for the links in them.
type tree struct {
	roots []*os.Root
	// parents are resolved directories.
	parents map[string]string
}

func openTree(dirs []string) (*tree, error) {
	t := &tree{parents: map[string]string{}}
	for _, dir := range dirs {
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.close()
			return nil, err
		}
		t.roots = append(t.roots, root)
	}
	return t, nil
}

func (t *tree) close() {
	for _, root := range t.roots {
		_ = root.Close()
	}
}

// place is where an entry of the tar lies in the layer's directory: a layer may name a file
// by a directory that is a link in a layer below.
func (t *tree) place(name string) string {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	dir, file := path.Split(name)
	dir = strings.TrimSuffix(dir, "/")
	if _, known := t.parents[dir]; !known {
		t.parents[dir] = t.resolve(dir)
	}
	return path.Join(t.parents[dir], file)
}

func (t *tree) resolve(dir string) string {
	done := ""
	rest := strings.Split(dir, "/")
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			done = strings.TrimPrefix(path.Dir("/"+done), "/")
			continue
		}
		at := path.Join(done, name)
		target, linked := t.link(at)
		if !linked || links == 40 {
			done = at
			continue
		}
		links++
		if path.IsAbs(target) {
			done = ""
		}
		rest = slices.Concat(strings.Split(target, "/"), rest)
	}
	return done
}

// link is the target of what the topmost layer has at a place, if that is a link.
func (t *tree) link(at string) (string, bool) {
	for _, root := range t.roots {
		info, err := root.Lstat(at)
		if err != nil {
			continue
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			return "", false
		}
		target, err := root.Readlink(at)
		return target, err == nil
	}
	return "", false
}

// damagedIn compares a layer's directory with its blob and gives the places that differ:
// regular files by size and content, other entries by what they are.
func damagedIn(t *tree, open opener) ([]string, error) {
	damaged := map[string]bool{}
	err := entriesOf(open, func(h *tar.Header, content io.Reader) error {
		if strings.HasPrefix(path.Base(h.Name), whiteout) {
			return nil
		}
		at := t.place(h.Name)
		ok, err := intact(t.roots[0], at, h, content)
		if err != nil {
			return err
		}
		delete(damaged, at) // the last entry of a name counts
		if !ok {
			damaged[at] = true
		}
		return nil
	})
	var places []string
	for place := range damaged {
		places = append(places, place)
	}
	slices.Sort(places)
	return places, err
}

func intact(root *os.Root, at string, h *tar.Header, content io.Reader) (bool, error) {
	if at == "" {
		return true, nil
	}
	info, err := root.Lstat(at)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	switch h.Typeflag {
	case tar.TypeReg:
		if !info.Mode().IsRegular() || info.Size() != h.Size {
			return false, nil
		}
		file, err := root.Open(at)
		if err != nil {
			return false, err
		}
		defer func() { _ = file.Close() }()
		return equal(file, content)
	case tar.TypeDir:
		return info.IsDir(), nil
	case tar.TypeSymlink:
		target, err := root.Readlink(at)
		return err == nil && target == h.Linkname, nil
	case tar.TypeLink:
		return info.Mode().IsRegular(), nil // its content is compared by its first name
	}
	return true, nil // devices and pipes have no content
}

// equal compares to the end. An error is one of the second, the blob's: a file that cannot
// be read is damaged.
func equal(file, content io.Reader) (bool, error) {
	a, b := make([]byte, 1<<16), make([]byte, 1<<16)
	for {
		n, err := io.ReadFull(content, b)
		end := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !end {
			return false, err
		}
		if m, _ := io.ReadFull(file, a[:n]); !bytes.Equal(a[:m], b[:n]) {
			return false, nil
		}
		if end {
			return true, nil
		}
	}
}
