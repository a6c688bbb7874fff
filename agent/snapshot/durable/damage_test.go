package durable

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"
)

type damage func(t *testing.T, path string)

func overwrite(offset int64, data []byte) damage {
	return func(t *testing.T, path string) {
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		must(t, err)
		defer file.Close()
		_, err = file.WriteAt(data, offset)
		must(t, err)
	}
}

func update(f func(*bolt.Tx) error) damage {
	return func(t *testing.T, path string) {
		db, err := bolt.Open(path, 0o600, nil)
		must(t, err)
		must(t, db.Update(f))
		must(t, db.Close())
	}
}

// rootOf is the page on which a bucket begins.
func rootOf(t *testing.T, path, bucket string) int64 {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true})
	must(t, err)
	defer db.Close()
	var page int64
	must(t, db.View(func(tx *bolt.Tx) error {
		page = int64(tx.Bucket([]byte(bucket)).Root())
		return nil
	}))
	if page == 0 {
		t.Fatalf("bucket %s has no page of its own", bucket)
	}
	return page
}

var pageSize = int64(os.Getpagesize())

// circle makes the first branch of a bucket point to itself: bbolt follows it for ever.
func circle(t *testing.T, path string) {
	root := rootOf(t, path, "objects")
	content, err := os.ReadFile(path)
	must(t, err)
	const header, pgidOffset, branchFlag = 16, 8, 1
	if content[root*pageSize+8] != branchFlag {
		t.Fatal("the bucket's root is no branch: there are too few records")
	}
	overwrite(root*pageSize+header+pgidOffset, binary.NativeEndian.AppendUint64(nil, uint64(root)))(t, path)
}

var damages = map[string]damage{
	"no database at all":   func(t *testing.T, path string) { must(t, os.WriteFile(path, []byte("scrap"), 0o600)) },
	"empty":                func(t *testing.T, path string) { must(t, os.WriteFile(path, nil, 0o600)) },
	"gone":                 func(t *testing.T, path string) { must(t, os.Remove(path)) },
	"both meta pages gone": overwrite(0, make([]byte, 2*pageSize)),
	"pages gone, on which bbolt panics": func(t *testing.T, path string) {
		info, err := os.Stat(path)
		must(t, err)
		overwrite(2*pageSize, make([]byte, info.Size()-2*pageSize))(t, path)
	},
	"cut short, so that reading faults":               func(t *testing.T, path string) { must(t, os.Truncate(path, 2*pageSize+10)) },
	"pages in a circle, which bbolt follows for ever": circle,
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

func TestInPlaceOfADamagedFile(t *testing.T) {
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			m := mustOpen(t, dir)
			sealed := fill(t, m)
			must(t, m.Seal(2))
			must(t, m.Write(Now, put("state", "a", "after the seal")))
			must(t, m.Close())
			damage(t, m.path())

			m, doubt := mustOpenDoubt(t, dir)
			if !strings.Contains(string(doubt), "generation 1") {
				t.Errorf("doubt %q, want generation 1", doubt)
			}
			if diff := cmp.Diff(sealed, records(m)); diff != "" {
				t.Errorf("records are not the sealed ones (-want +got):\n%s", diff)
			}
			must(t, m.Write(Now, put("state", "b", "new")))
			must(t, m.Close())
			sealed[Record{"state", "b"}] = "new"
			if diff := cmp.Diff(sealed, records(mustOpen(t, dir))); diff != "" {
				t.Errorf("records after the next start (-want +got):\n%s", diff)
			}
			if _, err := os.Stat(m.path() + damagedMark + "1"); err != nil && name != "gone" {
				t.Errorf("the damaged file is not kept: %v", err)
			}
		})
	}
}

func TestADamagedGenerationIsPassedOver(t *testing.T) {
	dir := t.TempDir()
	m := mustOpen(t, dir)
	want := fill(t, m)
	must(t, m.Seal(3))
	for _, value := range []string{"2", "3"} {
		must(t, m.Write(Now, put("state", "a", value)))
		must(t, m.Seal(3))
	}
	must(t, m.Close())
	must(t, os.WriteFile(m.path(), []byte("scrap"), 0o600))
	generations, err := Generations(dir)
	must(t, err)
	overwrite(generations[0].Bytes/2, []byte("scrap"))(t, generations[0].path)
	must(t, os.Truncate(generations[1].path, generations[1].Bytes/2))

	m, doubt := mustOpenDoubt(t, dir)
	if diff := cmp.Diff(want, records(m)); diff != "" || !strings.Contains(string(doubt), "generation 1") {
		t.Errorf("doubt %q, records are not those of generation 1 (-want +got):\n%s", doubt, diff)
	}
}

func TestWithoutAGoodGenerationAllIsNew(t *testing.T) {
	dir := t.TempDir()
	m := mustOpen(t, dir)
	fill(t, m)
	must(t, m.Close())
	must(t, os.WriteFile(m.path(), []byte("scrap"), 0o600))
	m, doubt := mustOpenDoubt(t, dir)
	if doubt == "" || len(records(m)) != 0 {
		t.Errorf("doubt %q, %d records; want a doubt and none", doubt, len(records(m)))
	}
	want := fill(t, m)
	must(t, m.Close())
	if diff := cmp.Diff(want, records(mustOpen(t, dir))); diff != "" {
		t.Errorf("records written after the damage (-want +got):\n%s", diff)
	}
}

func TestADamagedStoreIsToldWithItsCure(t *testing.T) {
	dir := t.TempDir()
	m := mustOpen(t, dir)
	must(t, m.Close())
	must(t, os.WriteFile(m.path(), []byte("scrap"), 0o600))
	var log strings.Builder
	m, _, err := Open(dir, Options{Log: funcr.New(func(_, args string) { log.WriteString(args) }, funcr.Options{}), Checker: m.checker})
	must(t, err)
	t.Cleanup(func() { m.Close() })
	if !strings.Contains(log.String(), "check the disk") || strings.Contains(log.String(), "the store is damaged: the store is damaged") {
		t.Errorf("log %s does not say once what is wrong and what to do", log.String())
	}
}

// The newer of the two heads is unreadable: the content is whole, and may be the one
// before the last.
func TestAHeadThatCannotBeReadIsADoubt(t *testing.T) {
	for page := range int64(2) {
		dir := t.TempDir()
		m := mustOpen(t, dir)
		fill(t, m)
		must(t, m.Write(Now, put("state", "a", "last")))
		must(t, m.Close())
		overwrite(page*pageSize+headOffset+headTxid, []byte{0xff})(t, m.path())
		m, doubt := mustOpenDoubt(t, dir)
		if doubt == "" {
			t.Errorf("head %d: no doubt, value %q", page, m.Get("state", "a"))
		}
		must(t, m.Write(Now, put("state", "a", "again")))
		must(t, m.Close())
		if got := mustOpen(t, dir).Get("state", "a"); string(got) != "again" {
			t.Errorf("head %d: after the next write the value is %q", page, got)
		}
	}
}

func TestGenerations(t *testing.T) {
	dir := t.TempDir()
	m := mustOpen(t, dir)
	fill(t, m)
	for _, retain := range []int{3, 3, 3, 3, 1} {
		must(t, m.Seal(retain))
	}
	generations, err := Generations(dir)
	must(t, err)
	if len(generations) != 1 || generations[0].Number != 5 {
		t.Errorf("generations %+v, want the fifth alone", generations)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"+newMark))
	must(t, err)
	if len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
}

func TestDamagedFilesAreBounded(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	for range keptDamaged + 9 {
		must(t, os.WriteFile(path, []byte("scrap"), 0o600))
		m, _ := mustOpenDoubt(t, dir)
		must(t, m.Write(Now))
		must(t, m.Close())
	}
	got, err := filepath.Glob(path + damagedMark + "*")
	must(t, err)
	want := []string{path + damagedMark + "10", path + damagedMark + "11", path + damagedMark + "12"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kept files (-want +got):\n%s", diff)
	}
}
