package durable

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
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

func mustOpen(t *testing.T, dir string) *Map {
	t.Helper()
	m, err := Open(dir, logr.Discard())
	must(t, err)
	t.Cleanup(func() { m.Close() })
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
	for i := range 40 {
		change := put("objects", strconv.Itoa(i), string(make([]byte, 100*i)))
		want[change.Record] = string(change.Value)
		must(t, m.Write(Now, change))
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

func TestADamagedFileIsKeptAndANewOneBegun(t *testing.T) {
	overwrite := func(offset int64, data string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			file, err := os.OpenFile(path, os.O_WRONLY, 0)
			must(t, err)
			defer file.Close()
			_, err = file.WriteAt([]byte(data), offset)
			must(t, err)
		}
	}
	update := func(f func(*bolt.Tx) error) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			db, err := bolt.Open(path, 0o600, nil)
			must(t, err)
			must(t, db.Update(f))
			must(t, db.Close())
		}
	}
	cases := map[string]func(*testing.T, string){
		"no database at all":   func(t *testing.T, path string) { must(t, os.WriteFile(path, []byte("scrap"), 0o600)) },
		"empty":                func(t *testing.T, path string) { must(t, os.WriteFile(path, nil, 0o600)) },
		"both meta pages gone": overwrite(0, string(make([]byte, 2*os.Getpagesize()))),
		"pages gone": func(t *testing.T, path string) {
			info, err := os.Stat(path)
			must(t, err)
			overwrite(int64(2*os.Getpagesize()), string(make([]byte, int(info.Size())-2*os.Getpagesize())))(t, path)
		},
		"cut short": func(t *testing.T, path string) { must(t, os.Truncate(path, int64(2*os.Getpagesize()+10))) },
		"a value changed": update(func(tx *bolt.Tx) error {
			bucket := tx.Bucket([]byte("objects"))
			value := append([]byte(nil), bucket.Get([]byte("9"))...)
			value[len(value)-1] ^= 1
			return bucket.Put([]byte("9"), value)
		}),
		"a value under another key": update(func(tx *bolt.Tx) error {
			bucket := tx.Bucket([]byte("objects"))
			value := append([]byte(nil), bucket.Get([]byte("9"))...)
			return errors.Join(bucket.Delete([]byte("9")), bucket.Put([]byte("99"), value))
		}),
		"a record lost": update(func(tx *bolt.Tx) error { return tx.Bucket([]byte("objects")).Delete([]byte("9")) }),
		"a bucket lost": update(func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte("objects")) }),
		"no version":    update(func(tx *bolt.Tx) error { return tx.Bucket(bucketMeta).Delete(keyVersion) }),
		"no sum":        update(func(tx *bolt.Tx) error { return tx.Bucket(bucketMeta).Delete(keyContent) }),
	}
	for name, damage := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			m := mustOpen(t, dir)
			fill(t, m)
			must(t, m.Close())
			damage(t, m.path())
			m = mustOpen(t, dir)
			if got := records(m); len(got) != 0 {
				t.Errorf("records of the new file: %v, want none", got)
			}
			want := fill(t, m)
			must(t, m.Close())
			if diff := cmp.Diff(want, records(mustOpen(t, dir))); diff != "" {
				t.Errorf("records written after the damage (-want +got):\n%s", diff)
			}
			if _, err := os.Stat(m.path() + damagedMark + "1"); err != nil {
				t.Errorf("the damaged file is not kept: %v", err)
			}
		})
	}
}

func TestDamagedFilesAreBounded(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	for range keptDamaged + 9 {
		must(t, os.WriteFile(path, []byte("scrap"), 0o600))
		must(t, mustOpen(t, dir).Close())
	}
	got, err := filepath.Glob(path + damagedMark + "*")
	must(t, err)
	want := []string{path + damagedMark + "10", path + damagedMark + "11", path + damagedMark + "12"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kept files (-want +got):\n%s", diff)
	}
}

func TestAFaultWhileInUseCostsNothing(t *testing.T) {
	dir := t.TempDir()
	m, err := Open(dir, logr.Discard())
	must(t, err)
	want := fill(t, m)
	must(t, os.Truncate(m.path(), 0))
	if err := m.Write(Now, put("state", "c", "2")); !errors.Is(err, ErrDamaged) {
		t.Errorf("got error %v, want %v", err, ErrDamaged)
	}
	want[Record{"state", "c"}] = "2"
	must(t, m.Write(Now))
	if diff := cmp.Diff(want, onDisk(t, m)); diff != "" {
		t.Errorf("records on the disk (-want +got):\n%s", diff)
	}
	if m.Problem() != nil {
		t.Errorf("problem %v, want none any more", m.Problem())
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
	if _, err := Open(dir, logr.Discard()); err == nil || errors.Is(err, ErrDamaged) {
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
