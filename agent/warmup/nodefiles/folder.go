package nodefiles

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// folder is the open directory of a file. Names in it are used by descriptor: whoever
// exchanges a directory for a link meanwhile gains nothing.
type folder struct{ fd int }

// openFolder opens the directory of a file below base, one name at a time and following no
// link. openat2 would do it in one call; systemd's RestrictSUIDSGID= forbids that one.
func openFolder(base, root string, names []string, create bool) (folder, error) {
	path := filepath.Join(base, root)
	flags := unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC
	fd, err := unix.Open(path, flags, 0)
	if create && errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(path, 0o755); err == nil {
			fd, err = unix.Open(path, flags, 0)
		}
	}
	if err != nil {
		return folder{}, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	for _, name := range names {
		path = filepath.Join(path, name)
		next, err := unix.Openat(fd, name, flags|unix.O_NOFOLLOW, 0)
		if create && errors.Is(err, fs.ErrNotExist) {
			// The agent's umask takes nothing from the owner; others get what they need below.
			if err = unix.Mkdirat(fd, name, 0o755); err == nil || errors.Is(err, fs.ErrExist) {
				next, err = unix.Openat(fd, name, flags|unix.O_NOFOLLOW, 0)
				if err == nil {
					err = unix.Fchmod(next, 0o755)
				}
			}
		}
		_ = unix.Close(fd)
		if err != nil {
			if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
				return folder{}, fmt.Errorf("%s is no directory, or a symbolic link, which is not followed", path)
			}
			return folder{}, &fs.PathError{Op: "open", Path: path, Err: err}
		}
		fd = next
	}
	return folder{fd}, nil
}

func (f folder) close() { _ = unix.Close(f.fd) }

// state is what a stat tells of a file; equal states mean the same content.
type state struct {
	device, inode uint64
	size          int64
	modified      int64 // ns
	changed       int64 // ns
}

func stateOf(s unix.Stat_t) state {
	return state{uint64(s.Dev), s.Ino, s.Size, s.Mtim.Nano(), s.Ctim.Nano()}
}

// stat is false for what is not there, and an error for what is no regular file.
func (f folder) stat(name string) (state, bool, error) {
	var s unix.Stat_t
	err := unix.Fstatat(f.fd, name, &s, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return state{}, false, nil
	case err != nil:
		return state{}, false, err
	case s.Mode&unix.S_IFMT != unix.S_IFREG:
		return state{}, true, errors.New("it is no regular file")
	}
	return stateOf(s), true, nil
}

// read takes a file with its marks. What is read is on the disk afterwards: a kept file and
// its original must not differ because the power was cut.
func (f folder) read(name, label string) (kept, state, error) {
	fd, err := unix.Openat(f.fd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return kept{}, state{}, err
	}
	file := os.NewFile(uintptr(fd), name)
	defer func() { _ = file.Close() }()
	var before, after unix.Stat_t
	if err := unix.Fstat(fd, &before); err != nil {
		return kept{}, state{}, err
	}
	if before.Mode&unix.S_IFMT != unix.S_IFREG {
		return kept{}, state{}, errors.New("it is no regular file")
	}
	content, err := io.ReadAll(io.LimitReader(file, maxSize+1))
	if err != nil {
		return kept{}, state{}, err
	}
	if len(content) > maxSize {
		return kept{}, state{}, fmt.Errorf("it has more than %d bytes", maxSize)
	}
	k := kept{Mode: before.Mode & 0o777, UID: int(before.Uid), GID: int(before.Gid), Modified: before.Mtim.Nano(), Content: content}
	buffer := make([]byte, 512)
	if n, err := unix.Fgetxattr(fd, label, buffer); err == nil {
		k.Label = string(buffer[:n])
	}
	_ = unix.Fsync(fd) // what cannot be synced is kept all the same
	_ = unix.Fsync(f.fd)
	if err := unix.Fstat(fd, &after); err != nil {
		return kept{}, state{}, err
	}
	if stateOf(after) != stateOf(before) {
		return kept{}, state{}, errBusy
	}
	return k, stateOf(after), nil
}

// errBusy says that a file has changed while it was read.
var errBusy = errors.New("it is being written")

// put writes a kept file. It never writes over one that is there, unless replace is set.
// A label that the node does not take is returned beside a file that was put.
func (f folder) put(name, label string, k kept, replace bool) (labelErr, err error) {
	temporary := "." + name + ".rekindle"
	// Of an agent that was killed here; nobody else uses the name.
	if err := unix.Unlinkat(f.fd, temporary, 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	fd, err := unix.Openat(f.fd, temporary, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), name)
	labelErr, err = write(file, label, k)
	times := []unix.Timespec{unix.NsecToTimespec(k.Modified), unix.NsecToTimespec(k.Modified)}
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = unix.UtimesNanoAt(f.fd, temporary, times, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err == nil {
		var flags uint = unix.RENAME_NOREPLACE
		if replace {
			flags = 0
		}
		err = unix.Renameat2(f.fd, temporary, f.fd, name, flags)
	}
	if err != nil {
		_ = unix.Unlinkat(f.fd, temporary, 0)
		return nil, err
	}
	return labelErr, unix.Fsync(f.fd)
}

func write(file *os.File, label string, k kept) (labelErr, err error) {
	if _, err := file.Write(k.Content); err != nil {
		return nil, err
	}
	if k.UID != os.Geteuid() || k.GID != os.Getegid() {
		if err := file.Chown(k.UID, k.GID); err != nil {
			return nil, err
		}
	}
	if err := file.Chmod(os.FileMode(k.Mode)); err != nil {
		return nil, err
	}
	if k.Label != "" {
		labelErr = unix.Fsetxattr(int(file.Fd()), label, []byte(k.Label), 0)
	}
	return labelErr, nil
}
