package images

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// errMarks says that a file has marks that the agent may not give: it has no right to make
// files that run as somebody else, and writing takes these marks away.
var errMarks = errors.New("it runs with rights of its own, which only the runtime can give it")

// capability is the extended attribute of a file that runs with rights of its own.
const capability = "security.capability"

// mend writes places of a layer's directory anew from its blob, whose digest was checked.
// A file that is there keeps its inode, owner, mode and attributes: those are in the
// journal and were not lost, and a container that has it open sees it whole again.
func mend(t *tree, open opener, places []string) error {
	wanted := map[string]bool{}
	for _, place := range places {
		wanted[place] = true
	}
	return entriesOf(open, func(h *tar.Header, content io.Reader) error {
		if strings.HasPrefix(path.Base(h.Name), whiteout) {
			return nil
		}
		at := t.place(h.Name)
		if !wanted[at] {
			return nil
		}
		if err := mendEntry(t, at, h, content); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		return nil
	})
}

func mendEntry(t *tree, at string, h *tar.Header, content io.Reader) error {
	root := t.roots[0]
	if _, marked := h.PAXRecords["SCHILY.xattr."+capability]; marked || h.Mode&0o6000 != 0 {
		return errMarks
	}
	info, err := root.Lstat(at)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return err
	}
	switch {
	case h.Typeflag == tar.TypeReg && (missing || info.Mode().IsRegular()):
		return mendFile(root, at, missing, h, content)
	case !missing:
		return fmt.Errorf("it is a %s", info.Mode().Type())
	case h.Typeflag == tar.TypeDir:
		err = root.Mkdir(at, 0o700)
	case h.Typeflag == tar.TypeSymlink:
		err = root.Symlink(h.Linkname, at)
	case h.Typeflag == tar.TypeLink:
		return root.Link(t.place(h.Linkname), at)
	default:
		return errors.New("it is no file, directory or link")
	}
	return errors.Join(err, marks(root, at, h), syncParent(root, at))
}

func mendFile(root *os.Root, at string, missing bool, h *tar.Header, content io.Reader) error {
	flags := os.O_WRONLY
	if missing {
		flags |= os.O_CREATE | os.O_EXCL
	}
	file, err := root.OpenFile(at, flags, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if _, err := unix.Fgetxattr(int(file.Fd()), capability, nil); err == nil {
		return errMarks
	}
	_, err = io.Copy(file, content)
	err = errors.Join(err, file.Truncate(h.Size), file.Sync())
	if missing {
		err = errors.Join(err, marks(root, at, h), syncParent(root, at))
	}
	return err
}

// marks gives a new entry its owner, mode and time.
func marks(root *os.Root, at string, h *tar.Header) error {
	err := root.Lchown(at, h.Uid, h.Gid)
	if h.Typeflag == tar.TypeSymlink {
		return err
	}
	return errors.Join(err, root.Chmod(at, h.FileInfo().Mode().Perm()), root.Chtimes(at, h.ModTime, h.ModTime))
}

func syncParent(root *os.Root, at string) error {
	dir, err := root.Open(path.Dir(at))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
