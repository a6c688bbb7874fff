package snapshot

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"rekindle.edge/agent/boot"
	"rekindle.edge/agent/snapshot/durable"
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
		Lost:       ptr.To(""), // the store is new
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
	for name, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, durable.FileName): 0o600} {
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

func TestSignOfLife(t *testing.T) {
	dir := t.TempDir()
	store := mustOpen(t, dir)
	got, err := LastAlive(dir)
	if got != nil || err != nil {
		t.Fatalf("without a file: got %v, %v, want nothing", got, err)
	}
	want := boot.Alive{BootID: "d3a4f3a0-3767-4022-bbfe-ad2645b3a44c", Boot: time.Hour, Wall: noon}
	must(t, store.PutAlive(boot.Alive{BootID: want.BootID, Boot: 123456 * time.Hour, Wall: noon.Add(time.Nanosecond)}))
	must(t, store.PutAlive(want))
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

func TestInStepAfterAPowerCut(t *testing.T) {
	dir := t.TempDir()
	store := mustOpen(t, dir)
	o := store.Objects()
	must(t, o.Sync(allPods, "20", nil))
	o.MarkInStep(Pods, noon)
	must(t, o.Sync(allService, "20", nil))
	o.MarkInStep(Pods, noon.Add(time.Hour))
	must(t, store.PutAlive(boot.Alive{BootID: "one"}))
	o.MarkInStep(Pods, noon.Add(2*time.Hour))

	// As a power cut leaves it, without the last words of a close.
	cut := t.TempDir()
	for _, name := range []string{durable.FileName, aliveName} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(cut, name), content, 0o600))
	}
	o = mustOpen(t, cut).Objects()
	if got, ok := o.InStep(Pods); !ok || !got.Equal(noon.Add(time.Hour)) {
		t.Errorf("pods were in step at %v, want %v", got.UTC(), noon.Add(time.Hour))
	}
	if got, ok := o.InStep(services); ok {
		t.Errorf("services were in step at %v, want never", got)
	}
}
