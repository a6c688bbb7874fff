package torture

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"

	"rekindle.edge/agent/snapshot"
)

// ext4 ioctl that ends a file system at once, as a power cut does: nothing more is
// written, neither data nor journal (EXT4_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH).
const (
	ext4Shutdown = 0x8004587d
	goingNoFlush = 2
)

// disk is an ext4 image that can lose its power.
type disk struct{ image, root string }

func newDisk(t *testing.T) *disk {
	t.Helper()
	if cuts == 0 {
		t.Skip("needs root and time: make torture")
	}
	d := &disk{image: filepath.Join(t.TempDir(), "disk.img"), root: t.TempDir()}
	file, err := os.Create(d.image)
	must(t, err)
	must(t, file.Truncate(64<<20))
	must(t, file.Close())
	output(t, "mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", d.image)
	d.mount(t)
	t.Cleanup(func() { _ = unix.Unmount(d.root, unix.MNT_DETACH) })
	return d
}

func (d *disk) mount(t *testing.T) { output(t, "mount", "-o", "loop", d.image, d.root) }

func (d *disk) cut(t *testing.T) {
	dir, err := os.Open(d.root)
	must(t, err)
	defer dir.Close()
	must(t, unix.IoctlSetPointerInt(int(dir.Fd()), ext4Shutdown, goingNoFlush))
}

// restart mounts what has reached the disk.
func (d *disk) restart(t *testing.T) {
	t.Helper()
	var err error
	for range 500 {
		if err = unix.Unmount(d.root, 0); !errors.Is(err, unix.EBUSY) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	must(t, err)
	d.mount(t)
}

func output(t *testing.T, name string, arguments ...string) {
	t.Helper()
	if out, err := exec.Command(name, arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, strings.TrimSpace(string(out)))
	}
}

func TestPowerCutWhileWriting(t *testing.T) {
	d := newDisk(t)
	n := newNode(d.root)
	random := rand.New(rand.NewPCG(3, 3))
	steps, lost := 0, 0
	for round := range cuts {
		seed := random.Uint64()
		r := writeAndKill(t, n.dir, seed, n.number+1, randomDuration(random, 5*longestWriting), func(process *os.Process) {
			d.cut(t)
			_ = process.Kill()
		})
		d.restart(t)
		what := fmt.Sprintf("cut %d", round)
		result, number := n.judge(t, seed, r, what)
		if result != exact {
			t.Fatalf("%s: the outcome is %q", what, result)
		}
		steps += r.begun - n.number
		lost += r.begun - number
		n.keep(t, seed, number)
	}
	t.Logf("%d power cuts, %d steps, the last %d of them lost as they may be", cuts, steps, lost)
}

// The file system ends below an agent that lives on, as when a disk is pulled.
func TestADiskThatDiesInUse(t *testing.T) {
	d := newDisk(t)
	store, err := snapshot.Open(stateDir(d.root), logr.Discard())
	must(t, err)
	o := store.Objects()
	must(t, o.Sync(allPods, "1", []snapshot.Object{object("p0", "u0", 1)}))
	d.cut(t)
	for i := range 50 {
		if err := o.Apply(allPods, snapshot.Added, object(fmt.Sprint("dead", i), fmt.Sprint("f", i), 10+i)); err == nil {
			t.Fatal("a dead disk took a pod")
		}
	}
	if pods, _ := o.List(snapshot.Pods); len(pods) != 51 || store.Problem() == nil {
		t.Errorf("%d pods in memory, want 51; problem %v", len(pods), store.Problem())
	}
	if store.Close() == nil {
		t.Error("closing says that all is written")
	}
}
