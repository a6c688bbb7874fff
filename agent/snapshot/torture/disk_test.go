package torture

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"

	"rekindle.edge/agent/snapshot"
)

const fullCommand = "fill-disk"

// A limit on the size of files stands for a full disk where nobody may mount one. It
// holds for a whole process, so the test has one of its own.
func TestAFullDisk(t *testing.T) {
	t.Run("by a limit on file sizes", func(t *testing.T) {
		command := exec.Command("/proc/self/exe", fullCommand, t.TempDir())
		if output, err := command.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, output)
		}
	})
	t.Run("by a small file system", func(t *testing.T) {
		dir := mountTmpfs(t)
		filler := filepath.Join(dir, "filler")
		must(t, fullDisk(dir, func() error { return fill(filler) }, func() error { return os.Remove(filler) }))
	})
}

// fill takes all space that is left.
func fill(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	for _, size := range []int{1 << 16, 1 << 12, 1} {
		for err = nil; err == nil; {
			_, err = file.Write(make([]byte, size))
		}
		if !errors.Is(err, unix.ENOSPC) {
			return err
		}
	}
	return nil
}

func fullByLimit(dir string) error {
	signal.Ignore(syscall.SIGXFSZ)
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	set := func(bytes uint64) func() error {
		return func() error { return unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: old.Max}) }
	}
	return fullDisk(dir, set(1), set(old.Cur))
}

// fullDisk is the story of a disk that fills up, while the agent runs and while it starts.
func fullDisk(dir string, fill, free func() error) error {
	state := filepath.Join(dir, "state")
	store, err := snapshot.Open(state, logr.Discard())
	if err != nil {
		return err
	}
	o := store.Objects()
	told := 0
	o.Subscribe(func(snapshot.Event) { told++ })
	if err := o.Sync(allPods, "1", []snapshot.Object{object("p0", "u0", 1)}); err != nil {
		return err
	}
	if err := fill(); err != nil {
		return err
	}
	for i := range 200 {
		if err := o.Apply(allPods, snapshot.Added, object(fmt.Sprint("full", i), fmt.Sprint("f", i), 10+i)); err == nil && i > 100 {
			return errors.New("a full disk took a pod")
		}
	}
	if store.Problem() == nil {
		return errors.New("a full disk is no problem")
	}
	if store.Seal() == nil {
		return errors.New("a full disk took a sealed generation")
	}
	if pods, _ := o.List(snapshot.Pods); len(pods) != 201 || told != 201 {
		return fmt.Errorf("%d pods in memory, %d events; want 201", len(pods), told)
	}
	if trusted, reason := o.Trusted(); !trusted {
		return fmt.Errorf("the list is held: %s", reason)
	}
	want := read(o)
	if err := free(); err != nil {
		return err
	}
	// Nobody does anything; the store tries again by itself.
	for deadline := time.Now().Add(40 * time.Second); store.Problem() != nil; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("still a problem with space: %w", store.Problem())
		}
	}
	if err := store.Close(); err != nil {
		return err
	}
	if err := fill(); err != nil {
		return err
	}
	defer func() { _ = free() }()
	if store, err = snapshot.Open(state, logr.Discard()); err != nil {
		return fmt.Errorf("a start on a full disk: %w", err)
	}
	if got := read(store.Objects()); got.String() != want.String() {
		return fmt.Errorf("after a start there is\n%s\nwant\n%s", got, want)
	}
	_ = store.Close() // what is left cannot be written
	return nil
}

func TestAReadOnlyDisk(t *testing.T) {
	dir := mountTmpfs(t)
	n := newNode(dir)
	seed := uint64(5)
	r := writeAndKill(t, dir, seed, 1, longestWriting, killed)
	_, number := n.judge(t, seed, r, "before")
	n.keep(t, seed, number)
	must(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	store := n.open(t)
	o := store.Objects()
	if got := read(o); got.String() != n.now.String() {
		t.Errorf("read-only there is\n%s\nwant\n%s", got, n.now)
	}
	for i := range 5 {
		if err := o.Apply(allPods, snapshot.Added, object(fmt.Sprint("ro", i), fmt.Sprint("f", i), 1000000+i)); err == nil {
			t.Error("a read-only disk took a pod")
		}
	}
	if store.Problem() == nil {
		t.Error("a read-only disk is no problem")
	}
	want := read(o)
	must(t, unix.Mount("", dir, "", unix.MS_REMOUNT, ""))
	for deadline := time.Now().Add(40 * time.Second); store.Problem() != nil && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
	}
	must(t, store.Problem())
	must(t, store.Close())
	store = n.open(t)
	defer store.Close()
	if got := read(store.Objects()); got.String() != want.String() {
		t.Errorf("after the next start there is\n%s\nwant\n%s", got, want)
	}
}

// mountTmpfs mounts a small file system of its own.
func mountTmpfs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("rekindle-torture", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("no file system can be mounted here (needs root): %v", err)
	}
	t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}
