package edgenode

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"rekindle.edge/test/internal/lab"
)

// The disk is an ext4 image, mounted at root() in the machine's mount namespace
// while the node is on. That mount outlives the node's processes: without it their
// end would unmount the file system, and unmounting writes everything back.

func (n *Node) image() string { return n.file("disk.img") }
func (n *Node) root() string  { return n.file("root") }

// createDisk makes the image with everything that is on a node before its first boot.
func (n *Node) createDisk(ctx context.Context) error {
	file, err := os.Create(n.image())
	if err != nil {
		return err
	}
	defer file.Close()
	if err := file.Truncate(int64(n.options.DiskMiB) << 20); err != nil {
		return err
	}
	if _, err := lab.Run(ctx, "mkfs.ext4", "-q", "-F", "-m", "0", "-N", "65536",
		"-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", n.image()); err != nil {
		return err
	}
	if err := n.mountDisk(ctx); err != nil {
		return err
	}
	return errors.Join(n.populate(ctx), n.writeBack(), n.unmountDisk())
}

func (n *Node) mountDisk(ctx context.Context) error {
	if err := os.MkdirAll(n.root(), 0o755); err != nil {
		return err
	}
	_, err := lab.Run(ctx, "mount", "-o", "loop", n.image(), n.root())
	return err
}

// writeBack puts all that the mounted disk has in memory into the image. Unmounting
// would do so too, but later: a node that boots beside this one has a copy of the
// mount until it has left the machine's mount namespace behind.
func (n *Node) writeBack() error {
	dir, err := os.Open(n.root())
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := unix.Syncfs(int(dir.Fd())); err != nil {
		return fmt.Errorf("writing back %s: %w", n.root(), err)
	}
	return nil
}

func (n *Node) unmountDisk() error {
	var err error
	// The namespace of a node that has just ended may hold the mount a moment longer.
	for range 500 {
		if err = unix.Unmount(n.root(), 0); !errors.Is(err, unix.EBUSY) {
			break
		}
		sleep(10)
	}
	if err != nil {
		return fmt.Errorf("unmount %s: %w", n.root(), err)
	}
	return nil
}

// ext4 ioctl that ends a file system at once: nothing more is written, neither data
// nor journal (EXT4_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH).
const (
	ext4Shutdown  = 0x8004587d
	goingNoFlush  = 2
	copiedImage   = "disk.next"
	snapshotImage = "disk.saved"
)

// loseUnsynced ends the mounted file system as a power cut does.
func (n *Node) loseUnsynced() error {
	dir, err := os.Open(n.root())
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := unix.IoctlSetPointerInt(int(dir.Fd()), ext4Shutdown, goingNoFlush); err != nil {
		return fmt.Errorf("shutting down the file system of %s: %w", n.root(), err)
	}
	return nil
}

// SaveDisk keeps a copy of the disk as it is. The node must be off.
func (n *Node) SaveDisk(ctx context.Context, name string) error {
	return n.copyDisk(ctx, n.image(), n.file(snapshotImage+"-"+name))
}

// RestoreDisk puts a saved copy back. The node must be off.
func (n *Node) RestoreDisk(ctx context.Context, name string) error {
	return n.copyDisk(ctx, n.file(snapshotImage+"-"+name), n.image())
}

// EditDisk lets edit change the disk, below root, while the node is off.
func (n *Node) EditDisk(ctx context.Context, edit func(root string) error) error {
	if n.boot != nil {
		return fmt.Errorf("node %s is on: cut its power or shut it down first", n.Name)
	}
	if err := n.mountDisk(ctx); err != nil {
		return err
	}
	return errors.Join(edit(n.root()), n.writeBack(), n.unmountDisk())
}

// DisableUnit keeps a unit from starting at boot. The node must be off.
func (n *Node) DisableUnit(ctx context.Context, unit string) error {
	return n.EditDisk(ctx, func(root string) error {
		return os.Remove(filepath.Join(root, unitDir, "multi-user.target.wants", unit))
	})
}

func (n *Node) copyDisk(ctx context.Context, from, to string) error {
	if n.boot != nil {
		return fmt.Errorf("node %s is on: cut its power or shut it down first", n.Name)
	}
	return copyImage(ctx, from, to)
}

// copyImage copies a sparse file and leaves the copy sparse. The copy is a new file
// under an old name: a loop device that still has the old one keeps it.
func copyImage(ctx context.Context, from, to string) error {
	part := to + ".part"
	if _, err := lab.Run(ctx, "cp", "--sparse=always", "--reflink=auto", from, part); err != nil {
		return err
	}
	return os.Rename(part, to)
}

// machineID is the node's own, the same in every boot.
func machineID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	return fmt.Sprintf("%x\n", id)
}

func copyFile(from, to string, mode os.FileMode) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return writeFile(to, content, mode)
}

func symlink(target, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.Symlink(target, path)
}

// copyLinks copies the symbolic links of a folder; a folder that does not exist has none.
func copyLinks(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, entry := range entries {
		target, err := os.Readlink(filepath.Join(from, entry.Name()))
		if err != nil {
			continue // not a link
		}
		if err := symlink(target, filepath.Join(to, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}
