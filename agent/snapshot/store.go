// Package snapshot is the agent's durable store: one bbolt file, and beside it the sign of
// life, which is the only thing that is written while nothing happens.
//
// Layout, version 1: bucket "meta" with the version; bucket "state" with the mark, the
// applied spec, the open record and whether a pod list was ever seen; bucket "pods" with
// the pods last seen, by key; bucket "recoveries" with the closed records in the order of
// their closing. Every value is JSON behind its checksum. A call that writes returns after
// fsync.
package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"

	"rekindle.edge/agent/boot"
	"rekindle.edge/agent/timeline"
	"rekindle.edge/api/v1alpha1"
)

const (
	fileName = "rekindle.db"
	// version of the layout. A store of another version is not touched.
	version = 1
	// keptRecoveries bounds the closed records.
	keptRecoveries = 20
)

var (
	bucketMeta       = []byte("meta")
	bucketState      = []byte("state")
	bucketPods       = []byte("pods")
	bucketRecoveries = []byte("recoveries")

	keyVersion = []byte("version")
	keyMark    = []byte("mark")
	keySpec    = []byte("spec")
	keyOpen    = []byte("open")
	keyListed  = []byte("listed")
)

// Spec is the node's part of its policy as the agent last took it over.
type Spec struct {
	Generation int64                     `json:"generation"`
	Spec       v1alpha1.NodeRecoverySpec `json:"spec"`
}

// Contents is everything in the store.
type Contents struct {
	// Mark is of the boot in which the store was last written. Nil: the store is new.
	Mark *boot.Mark
	// Spec is nil when no policy applies, or none was ever seen.
	Spec *Spec
	// Pods last seen, by key.
	Pods map[string]timeline.LastSeen
	// Listed says whether a pod list was ever seen.
	Listed bool
	// Open is the record that is not closed. Nil: none.
	Open *timeline.State
	// Recoveries are the closed records, newest first.
	Recoveries []v1alpha1.Recovery
}

// Store is the open file. Its methods are safe for concurrent use.
type Store struct {
	db *bolt.DB
}

// Close closes the file.
func (s *Store) Close() error { return s.db.Close() }

// Load reads everything.
func (s *Store) Load() (Contents, error) {
	contents := Contents{Pods: map[string]timeline.LastSeen{}}
	err := s.view(func(tx *bolt.Tx) error {
		state := tx.Bucket(bucketState)
		for _, entry := range []struct {
			key    []byte
			decode func([]byte) error
		}{
			{keyMark, into(&contents.Mark)},
			{keySpec, into(&contents.Spec)},
			{keyOpen, into(&contents.Open)},
			{keyListed, into(&contents.Listed)},
		} {
			if value := state.Get(entry.key); value != nil {
				if err := entry.decode(value); err != nil {
					return fmt.Errorf("%s: %w", entry.key, err)
				}
			}
		}
		err := tx.Bucket(bucketPods).ForEach(func(key, value []byte) error {
			var pod timeline.LastSeen
			if err := open(value, &pod); err != nil {
				return fmt.Errorf("pod %s: %w", key, err)
			}
			contents.Pods[string(key)] = pod
			return nil
		})
		if err != nil {
			return err
		}
		cursor := tx.Bucket(bucketRecoveries).Cursor()
		for key, value := cursor.Last(); key != nil; key, value = cursor.Prev() {
			var record v1alpha1.Recovery
			if err := open(value, &record); err != nil {
				return fmt.Errorf("recovery: %w", err)
			}
			contents.Recoveries = append(contents.Recoveries, record)
		}
		return nil
	})
	return contents, err
}

// PutMark keeps which boot this is, and how the agent was stopped in it.
func (s *Store) PutMark(mark boot.Mark) error {
	return s.update(func(tx *bolt.Tx) error { return put(tx, keyMark, mark) })
}

// PutSpec keeps the applied spec; nil removes it.
func (s *Store) PutSpec(spec *Spec) error {
	return s.update(func(tx *bolt.Tx) error {
		if spec == nil {
			return tx.Bucket(bucketState).Delete(keySpec)
		}
		return put(tx, keySpec, spec)
	})
}

// PutPods keeps pods that have changed since they were last written, and drops those that
// are gone.
func (s *Store) PutPods(changed map[string]timeline.LastSeen, gone []string) error {
	return s.update(func(tx *bolt.Tx) error {
		pods := tx.Bucket(bucketPods)
		for key, pod := range changed {
			value, err := seal(pod)
			if err != nil {
				return err
			}
			if err := pods.Put([]byte(key), value); err != nil {
				return err
			}
		}
		for _, key := range gone {
			if err := pods.Delete([]byte(key)); err != nil {
				return err
			}
		}
		return put(tx, keyListed, true)
	})
}

// PutOpen keeps the open record as it stands.
func (s *Store) PutOpen(state timeline.State) error {
	return s.update(func(tx *bolt.Tx) error { return put(tx, keyOpen, state) })
}

// CloseRecord keeps a closed record in place of the open one, in one transaction: a power
// cut leaves one or the other. A record of the same boot is replaced.
func (s *Store) CloseRecord(record v1alpha1.Recovery) error {
	return s.update(func(tx *bolt.Tx) error {
		bucket := tx.Bucket(bucketRecoveries)
		var keys [][]byte
		cursor := bucket.Cursor()
		for key, value := cursor.First(); key != nil; key, value = cursor.Next() {
			var old v1alpha1.Recovery
			if err := open(value, &old); err != nil {
				return fmt.Errorf("recovery: %w", err)
			}
			if old.BootID == record.BootID {
				if err := cursor.Delete(); err != nil {
					return err
				}
				continue
			}
			keys = append(keys, append([]byte(nil), key...))
		}
		for ; len(keys) >= keptRecoveries; keys = keys[1:] {
			if err := bucket.Delete(keys[0]); err != nil {
				return err
			}
		}
		number, err := bucket.NextSequence()
		if err != nil {
			return err
		}
		value, err := seal(record)
		if err != nil {
			return err
		}
		if err := bucket.Put(binary.BigEndian.AppendUint64(nil, number), value); err != nil {
			return err
		}
		return tx.Bucket(bucketState).Delete(keyOpen)
	})
}

func (s *Store) view(f func(*bolt.Tx) error) error {
	return guard(func() error { return s.db.View(f) })
}

func (s *Store) update(f func(*bolt.Tx) error) error {
	return guard(func() error { return s.db.Update(f) })
}

func put(tx *bolt.Tx, key []byte, v any) error {
	value, err := seal(v)
	if err != nil {
		return err
	}
	return tx.Bucket(bucketState).Put(key, value)
}

func into[T any](v *T) func([]byte) error {
	return func(value []byte) error { return open(value, v) }
}

// initialise makes the buckets of a new file and checks the version of an old one.
func initialise(db *bolt.DB) error {
	return db.Update(func(tx *bolt.Tx) error {
		if meta := tx.Bucket(bucketMeta); meta != nil {
			var found int
			if err := open(meta.Get(keyVersion), &found); err != nil {
				return fmt.Errorf("version: %w", err)
			}
			if found != version {
				return fmt.Errorf("%w: the file has version %d, this agent knows version %d", errVersion, found, version)
			}
			return nil
		}
		for _, name := range [][]byte{bucketMeta, bucketState, bucketPods, bucketRecoveries} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		value, err := seal(version)
		if err != nil {
			return err
		}
		return tx.Bucket(bucketMeta).Put(keyVersion, value)
	})
}

// errVersion: the file is sound, but of another agent.
var errVersion = errors.New("the store was written by another version of the agent")

func ensureDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	// The directory may have been made by a package or by hand.
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	return nil
}

func dbPath(dir string) string { return filepath.Join(dir, fileName) }
