package daemon

import (
	"crypto/sha256"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	bolt "go.etcd.io/bbolt"

	"rekindle.edge/agent/snapshot"
	"rekindle.edge/agent/snapshot/durable"
	"rekindle.edge/api/v1alpha1"
)

func TestAStoreThatTakesNoChangesIsAFinding(t *testing.T) {
	dir := t.TempDir()
	// A file of an agent to come may not be touched.
	db, err := bolt.Open(filepath.Join(dir, durable.FileName), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		meta, err := tx.CreateBucket([]byte("meta"))
		if err != nil {
			return err
		}
		sum := sha256.Sum256([]byte("99"))
		return meta.Put([]byte("version"), append(sum[:8:8], "99"...))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		dir  string
		want int
	}{{dir, 1}, {t.TempDir(), 0}} {
		store, err := snapshot.Open(tc.dir, logr.Discard())
		if err != nil {
			t.Fatal(err)
		}
		l := &loop{store: store, changed: make(chan struct{}, 1)}
		l.watchStore()
		found := storeFindings(store)
		if len(found) != tc.want || len(l.changed) != tc.want {
			t.Fatalf("%d findings, %d signals, want %d of each", len(found), len(l.changed), tc.want)
		}
		if tc.want > 0 && (found[0].Reason != v1alpha1.ReasonStoreNotWritten || !strings.Contains(found[0].Message, "version 99")) {
			t.Errorf("finding %+v", found[0])
		}
		_ = store.Close() // the one of a newer agent takes nothing
	}
}
