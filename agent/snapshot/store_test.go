package snapshot

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"
	"k8s.io/utils/ptr"

	"rekindle.edge/agent/boot"
	"rekindle.edge/agent/timeline"
	"rekindle.edge/api/v1alpha1"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func mustOpen(t *testing.T, dir string) *Store {
	t.Helper()
	store, err := Open(dir, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func fill(t *testing.T, store *Store) Contents {
	t.Helper()
	want := Contents{
		Mark: &boot.Mark{BootID: "two", Stop: boot.StopSystem, StopWall: noon},
		Spec: &Spec{Generation: 3, Spec: v1alpha1.NodeRecoverySpec{PolicyName: "edge", Target: v1alpha1.RecoveryTarget{RecoverySeconds: 20}}},
		Pods: map[string]timeline.LastSeen{
			"a":             {Name: "shop/a", Ready: true},
			"static/shop/s": {Name: "shop/s", Finished: true, Deleting: true},
		},
		Listed: true,
		Open: &timeline.State{
			BootID: "two", PreviousEnd: v1alpha1.PreviousEndPowerLoss, LastSign: noon, TargetSeconds: 20,
			Edges:    timeline.Edges{Kubelet: ptr.To(2 * time.Second)},
			Expected: map[string]timeline.Expected{"a": {Name: "shop/a", ReadyAt: ptr.To(time.Minute)}},
			Listed:   true, Online: true,
		},
		Recoveries: []v1alpha1.Recovery{{BootID: "one", Result: v1alpha1.RecoveryComplete, TotalMilliseconds: ptr.To[int64](7000)}, {BootID: "zero"}},
	}
	must(t, store.CloseRecord(want.Recoveries[1]))
	must(t, store.CloseRecord(want.Recoveries[0]))
	must(t, store.PutMark(*want.Mark))
	must(t, store.PutSpec(want.Spec))
	must(t, store.PutPods(map[string]timeline.LastSeen{"gone": {Name: "shop/gone"}}, nil))
	must(t, store.PutPods(want.Pods, []string{"gone"}))
	must(t, store.PutOpen(*want.Open))
	return want
}

func TestWhatIsStoredIsThereAfterAReopen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	store := mustOpen(t, dir)
	want := fill(t, store)
	must(t, store.Close())
	got, err := mustOpen(t, dir).Load()
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("contents (-want +got):\n%s", diff)
	}
	for name, want := range map[string]os.FileMode{dir: 0o700, dbPath(dir): 0o600} {
		info, err := os.Stat(name)
		must(t, err)
		if got := info.Mode().Perm(); got != want {
			t.Errorf("mode of %s is %v, want %v", name, got, want)
		}
	}
}

func TestClosingARecord(t *testing.T) {
	store := mustOpen(t, t.TempDir())
	must(t, store.PutOpen(timeline.State{BootID: "x"}))
	for i := range keptRecoveries + 3 {
		must(t, store.CloseRecord(v1alpha1.Recovery{BootID: strconv.Itoa(i)}))
	}
	must(t, store.CloseRecord(v1alpha1.Recovery{BootID: "21", ReadyPods: 7}))
	got, err := store.Load()
	must(t, err)
	if got.Open != nil {
		t.Error("the open record is still there after it was closed")
	}
	if len(got.Recoveries) != keptRecoveries || got.Recoveries[0].ReadyPods != 7 || got.Recoveries[1].BootID != "22" {
		t.Errorf("got %d records, newest %+v, then %s; want %d, boot 21 replaced and newest, then 22",
			len(got.Recoveries), got.Recoveries[0], got.Recoveries[1].BootID, keptRecoveries)
	}
}

func TestADamagedStoreIsMovedAside(t *testing.T) {
	overwrite := func(offset int64, data string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			file, err := os.OpenFile(path, os.O_WRONLY, 0)
			must(t, err)
			defer file.Close()
			_, err = file.WriteAt([]byte(data), offset)
			must(t, err)
		}
	}
	cases := map[string]func(*testing.T, string){
		"no database at all":   func(t *testing.T, path string) { must(t, os.WriteFile(path, []byte("scrap"), 0o600)) },
		"both meta pages gone": overwrite(0, string(make([]byte, 2*os.Getpagesize()))),
		"pages gone": func(t *testing.T, path string) {
			info, err := os.Stat(path)
			must(t, err)
			overwrite(int64(2*os.Getpagesize()), string(make([]byte, int(info.Size())-2*os.Getpagesize())))(t, path)
		},
		"cut short": func(t *testing.T, path string) { must(t, os.Truncate(path, int64(2*os.Getpagesize()+10))) },
		"a value changed": func(t *testing.T, path string) {
			db, err := bolt.Open(path, 0o600, nil)
			must(t, err)
			must(t, db.Update(func(tx *bolt.Tx) error {
				value := append([]byte(nil), tx.Bucket(bucketPods).Get([]byte("a"))...)
				value[len(value)-1] ^= 1
				return tx.Bucket(bucketPods).Put([]byte("a"), value)
			}))
			must(t, db.Close())
		},
	}
	for name, damage := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			store := mustOpen(t, dir)
			fill(t, store)
			must(t, store.Close())
			damage(t, dbPath(dir))
			store = mustOpen(t, dir)
			got, err := store.Load()
			must(t, err)
			if diff := cmp.Diff(Contents{Pods: map[string]timeline.LastSeen{}}, got); diff != "" {
				t.Errorf("contents of the new store (-want +got):\n%s", diff)
			}
			fill(t, store)
			if _, err := os.Stat(dbPath(dir) + damagedMark + "1"); err != nil {
				t.Errorf("the damaged file is not kept: %v", err)
			}
		})
	}
}

func TestDamagedFilesAreBounded(t *testing.T) {
	dir := t.TempDir()
	for range keptDamaged + 9 {
		must(t, os.WriteFile(dbPath(dir), []byte("scrap"), 0o600))
		store := mustOpen(t, dir)
		must(t, store.Close())
	}
	got, err := filepath.Glob(dbPath(dir) + damagedMark + "*")
	must(t, err)
	want := []string{dbPath(dir) + damagedMark + "10", dbPath(dir) + damagedMark + "11", dbPath(dir) + damagedMark + "12"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kept files (-want +got):\n%s", diff)
	}
}

func TestWhatIsNoDamageIsLeftAlone(t *testing.T) {
	t.Run("a store that another process holds", func(t *testing.T) {
		dir := t.TempDir()
		mustOpen(t, dir)
		if _, err := Open(dir, logr.Discard()); err == nil || errors.Is(err, ErrDamaged) {
			t.Errorf("got error %v, want one that is no damage", err)
		}
	})
	t.Run("a store of a later version", func(t *testing.T) {
		dir := t.TempDir()
		store := mustOpen(t, dir)
		must(t, store.update(func(tx *bolt.Tx) error {
			value, err := seal(version + 1)
			must(t, err)
			return tx.Bucket(bucketMeta).Put(keyVersion, value)
		}))
		must(t, store.Close())
		if _, err := Open(dir, logr.Discard()); !errors.Is(err, errVersion) {
			t.Errorf("got error %v, want %v", err, errVersion)
		}
		if _, err := os.Stat(dbPath(dir)); err != nil {
			t.Errorf("the file is not where it was: %v", err)
		}
	})
}

func TestSignOfLife(t *testing.T) {
	dir := t.TempDir()
	got, err := LastAlive(dir)
	if got != nil || err != nil {
		t.Fatalf("without a file: got %v, %v, want nothing", got, err)
	}
	want := boot.Alive{BootID: "d3a4f3a0-3767-4022-bbfe-ad2645b3a44c", Boot: time.Hour, Wall: noon}
	must(t, PutAlive(dir, boot.Alive{BootID: want.BootID, Boot: 123456 * time.Hour, Wall: noon.Add(time.Nanosecond)}))
	must(t, PutAlive(dir, want))
	got, err = LastAlive(dir)
	must(t, err)
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Errorf("sign of life (-want +got):\n%s", diff)
	}
	must(t, os.WriteFile(filepath.Join(dir, aliveName), make([]byte, aliveSize), 0o600))
	if got, err := LastAlive(dir); got != nil || err == nil {
		t.Errorf("a torn write: got %v, %v, want an error", got, err)
	}
}

func TestAFaultWhileInUseIsAnError(t *testing.T) {
	dir := t.TempDir()
	store, err := Open(dir, logr.Discard())
	must(t, err)
	fill(t, store)
	// Not closed: what is left of it may hold its locks.
	must(t, os.Truncate(dbPath(dir), 0))
	if _, err := store.Load(); !errors.Is(err, ErrDamaged) {
		t.Errorf("got error %v, want %v", err, ErrDamaged)
	}
	must(t, Discard(dir))
	fill(t, mustOpen(t, dir))
}
