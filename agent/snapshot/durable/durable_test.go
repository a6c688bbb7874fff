package durable

import (
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestMain lets the test binary be the checking process.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == CheckCommand {
		os.Exit(CheckMain(os.Args[2:], os.Stderr))
	}
	// The race detector would let every child wait for a second before it ends.
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
	os.Exit(m.Run())
}

func raceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

func checker() *Checker {
	c := SelfChecker()
	c.CPUSeconds = 1
	if raceDetector() {
		c.MemoryBytes = math.MaxUint64 // its own memory is more than any limit
	}
	return c
}

func open(dir string) (*Map, Doubt, error) {
	return Open(dir, Options{Log: logr.Discard(), Checker: checker()})
}

func mustOpenDoubt(t *testing.T, dir string) (*Map, Doubt) {
	t.Helper()
	m, doubt, err := open(dir)
	must(t, err)
	t.Cleanup(func() { m.Close() })
	return m, doubt
}

// mustOpen opens what must be sound.
func mustOpen(t *testing.T, dir string) *Map {
	t.Helper()
	m, doubt := mustOpenDoubt(t, dir)
	if doubt != "" {
		t.Fatalf("%s is in doubt: %s", dir, doubt)
	}
	return m
}

func records(m *Map) map[Record]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := map[Record]string{}
	for record, value := range m.records {
		found[record] = string(value)
	}
	return found
}

func put(bucket, key, value string) Change { return Change{Record{bucket, key}, []byte(value)} }

func remove(bucket, key string) Change { return Change{Record: Record{bucket, key}} }

// fill writes more than one page, in several commits.
func fill(t *testing.T, m *Map) map[Record]string {
	t.Helper()
	want := map[Record]string{}
	for i := range 80 {
		change := put("objects", strconv.Itoa(i), string(make([]byte, 50*i)))
		want[change.Record] = string(change.Value)
		must(t, m.Write(Lazy, change))
		if i%20 == 0 {
			must(t, m.Write(Now))
		}
	}
	must(t, m.Write(Now, put("state", "a", "1"), put("state", "b", ""), remove("objects", "7")))
	want[Record{"state", "a"}], want[Record{"state", "b"}] = "1", ""
	delete(want, Record{"objects", "7"})
	return want
}

func TestWhatIsWrittenIsThereAfterAReopen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	m := mustOpen(t, dir)
	want := fill(t, m)
	must(t, m.Close())
	m = mustOpen(t, dir)
	if diff := cmp.Diff(want, records(m)); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	if m.Problem() != nil {
		t.Errorf("problem %v, want none", m.Problem())
	}
	for name, want := range map[string]os.FileMode{dir: 0o700, m.path(): 0o600} {
		info, err := os.Stat(name)
		must(t, err)
		if got := info.Mode().Perm(); got != want {
			t.Errorf("mode of %s is %v, want %v", name, got, want)
		}
	}
}

// onDisk is what a process that is killed now would find. A second handle on the file
// would wait for its lock, so a copy is read.
func onDisk(t *testing.T, m *Map) map[Record]string {
	t.Helper()
	content, err := os.ReadFile(m.path())
	must(t, err)
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, FileName), content, 0o600))
	copied := mustOpen(t, dir)
	defer copied.Close()
	return records(copied)
}

func TestHowSoonAChangeIsOnTheDisk(t *testing.T) {
	m := mustOpen(t, t.TempDir())
	must(t, m.Write(Now))
	must(t, m.Write(Lazy, put("b", "lazy", "1")))
	must(t, m.Write(Slow, put("b", "slow", "1")))
	time.Sleep(soon + 200*time.Millisecond)
	if got := onDisk(t, m); len(got) != 0 {
		t.Errorf("on disk %v, want nothing yet", got)
	}
	must(t, m.Write(Soon, put("b", "soon", "1")))
	if got := onDisk(t, m); len(got) != 0 {
		t.Errorf("on disk %v, want nothing yet", got)
	}
	time.Sleep(soon + 200*time.Millisecond)
	want := map[Record]string{{"b", "lazy"}: "1", {"b", "slow"}: "1", {"b", "soon"}: "1"}
	if diff := cmp.Diff(want, onDisk(t, m)); diff != "" {
		t.Errorf("after a second (-want +got):\n%s", diff)
	}
	must(t, m.Write(Now, put("b", "now", "1")))
	want[Record{"b", "now"}] = "1"
	if diff := cmp.Diff(want, onDisk(t, m)); diff != "" {
		t.Errorf("at once (-want +got):\n%s", diff)
	}
}

func TestAFaultWhileInUseCostsNothing(t *testing.T) {
	dir := t.TempDir()
	m, _, err := open(dir)
	must(t, err)
	want := fill(t, m)
	must(t, os.Truncate(m.path(), 0))
	must(t, m.Write(Now, put("state", "c", "2")))
	want[Record{"state", "c"}] = "2"
	if diff := cmp.Diff(want, onDisk(t, m)); diff != "" {
		t.Errorf("records on the disk (-want +got):\n%s", diff)
	}
	if m.Problem() != nil {
		t.Errorf("problem %v, want none", m.Problem())
	}
	if _, err := os.Stat(m.path() + damagedMark + "1"); err != nil {
		t.Errorf("the damaged file is not kept: %v", err)
	}
}

func TestAFileOfANewerAgentIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	m := mustOpen(t, dir)
	fill(t, m)
	must(t, m.Close())
	db, err := bolt.Open(m.path(), 0o600, nil)
	must(t, err)
	must(t, db.Update(func(tx *bolt.Tx) error {
		value, err := sealV1(version + 1)
		must(t, err)
		return tx.Bucket(bucketMeta).Put(keyVersion, value)
	}))
	must(t, db.Close())
	before, err := os.ReadFile(m.path())
	must(t, err)

	m = mustOpen(t, dir)
	var newer *VersionError
	if !errors.As(m.Problem(), &newer) || newer.Found != version+1 {
		t.Errorf("problem %v, want version %d", m.Problem(), version+1)
	}
	if err := m.Write(Now, put("state", "a", "1")); !errors.As(err, &newer) {
		t.Errorf("writing: got error %v, want the version", err)
	}
	if got := string(m.Get("state", "a")); got != "1" {
		t.Errorf("in memory is %q, want what was written", got)
	}
	m.Close()
	after, err := os.ReadFile(m.path())
	must(t, err)
	if string(after) != string(before) {
		t.Error("the file was changed")
	}
}

func TestAFileThatIsHeldIsNotLoaded(t *testing.T) {
	dir := t.TempDir()
	fill(t, mustOpen(t, dir))
	if _, _, err := open(dir); err == nil || errors.Is(err, ErrDamaged) {
		t.Errorf("got error %v, want one that is no damage", err)
	}
}

// A file as the agent of layout version 1 wrote it.
func writeV1(t *testing.T, path string, want map[Record]string) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, nil)
	must(t, err)
	must(t, db.Update(func(tx *bolt.Tx) error {
		for _, name := range append([]string{"meta"}, bucketsV1...) {
			_, err := tx.CreateBucket([]byte(name))
			must(t, err)
		}
		value, err := sealV1(1)
		must(t, err)
		must(t, tx.Bucket(bucketMeta).Put(keyVersion, value))
		for record, data := range want {
			value, err := sealV1(map[string]string{"v": data})
			must(t, err)
			must(t, tx.Bucket([]byte(record.Bucket)).Put([]byte(record.Key), value))
		}
		return nil
	}))
	must(t, db.Close())
}

func TestAFileOfVersion1IsUpgraded(t *testing.T) {
	dir := t.TempDir()
	written := map[Record]string{{"state", "mark"}: "m", {"pods", "a"}: "p", {"recoveries", "\x00\x01"}: "r"}
	writeV1(t, filepath.Join(dir, FileName), written)
	want := map[Record]string{}
	for record, data := range maps.All(written) {
		want[record] = `{"v":"` + data + `"}`
	}
	for range 2 {
		m := mustOpen(t, dir)
		must(t, m.Write(Now))
		if diff := cmp.Diff(want, records(m)); diff != "" {
			t.Errorf("records (-want +got):\n%s", diff)
		}
		must(t, m.Close())
	}
	db, err := bolt.Open(filepath.Join(dir, FileName), 0o600, nil)
	must(t, err)
	defer db.Close()
	_, found, err := load(db)
	if err != nil || found != version {
		t.Errorf("the file has version %d, error %v, want version %d", found, err, version)
	}
}

func TestCheckingProcessStartsNoOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	must(t, os.WriteFile(path, []byte("no store"), 0o600))
	t.Setenv(checkingVariable, "1")
	checker := &Checker{Command: []string{"/bin/true"}} // would call anything sound
	if err := checker.check(path); err == nil {
		t.Error("the file was checked in another process")
	}
}
