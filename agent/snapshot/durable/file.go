package durable

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"time"

	"github.com/cespare/xxhash/v2"
	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// FileName is the file's name in its directory.
const FileName = "rekindle.db"

// lockTimeout bounds the wait for another process to let go of the file.
const lockTimeout = time.Second

var (
	bucketMeta = []byte("meta")
	keyVersion = []byte("version")
	keyContent = []byte("content")
)

// ErrDamaged says that the file, or a page of it, is not what was written.
var ErrDamaged = errors.New("the store is damaged")

// file is the open bbolt file. Layout, version 2: in bucket "meta" the version and the sum
// of the content; in every other bucket values behind their checksums.
type file struct{ db *bolt.DB }

const checksumSize = 8

// checksum covers a record's place as well, so that a value cannot pass under another key.
func checksum(bucket, key, value []byte) uint64 {
	var lengths [8]byte
	binary.LittleEndian.PutUint32(lengths[:4], uint32(len(bucket)))
	binary.LittleEndian.PutUint32(lengths[4:], uint32(len(key)))
	hash := xxhash.New()
	for _, part := range [][]byte{lengths[:], bucket, key, value} {
		_, _ = hash.Write(part) // never fails
	}
	return hash.Sum64()
}

// content sums up all records: their number and the sum of their checksums. It is kept
// with every commit; pages that were lost or exchanged change it.
type content struct{ count, sum uint64 }

func (c content) encode() []byte {
	value := binary.LittleEndian.AppendUint64(nil, c.count)
	value = binary.LittleEndian.AppendUint64(value, c.sum)
	return binary.LittleEndian.AppendUint64(value, xxhash.Sum64(value))
}

func decodeContent(value []byte) (content, error) {
	if len(value) != 24 || xxhash.Sum64(value[:16]) != binary.LittleEndian.Uint64(value[16:]) {
		return content{}, fmt.Errorf("%w: the sum of its content cannot be read", ErrDamaged)
	}
	return content{binary.LittleEndian.Uint64(value), binary.LittleEndian.Uint64(value[8:])}, nil
}

// options: the freelist stays in the file. Without it, bbolt looks for free pages in a
// goroutine of its own, where a fault on a damaged page ends the process.
func options(readOnly bool) *bolt.Options {
	return &bolt.Options{Timeout: lockTimeout, ReadOnly: readOnly, FreelistType: bolt.FreelistMapType, NoStatistics: true}
}

// openDB opens a bbolt file and tells damage from what may go away.
func openDB(path string, readOnly bool) (*bolt.DB, error) {
	db, err := bolt.Open(path, 0o600, options(readOnly))
	var pathError *fs.PathError
	switch {
	case err == nil:
		return db, nil
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("another process holds %s: is a second agent running? %w", path, err)
	case errors.As(err, &pathError):
		return nil, err
	}
	if info, statErr := os.Stat(path); statErr == nil && info.Size() > 0 {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil, err
}

func (f *file) close() error {
	// Closing may fault as well.
	return guard(f.db.Close)
}

// commit writes changes and returns after fsync.
func (f *file) commit(changes []Change) error {
	return guard(func() error {
		return f.db.Update(func(tx *bolt.Tx) error { return write(tx, changes) })
	})
}

func write(tx *bolt.Tx, changes []Change) error {
	meta, err := tx.CreateBucketIfNotExists(bucketMeta)
	if err != nil {
		return err
	}
	var now content
	if value := meta.Get(keyContent); value != nil {
		if now, err = decodeContent(value); err != nil {
			return err
		}
	}
	for _, change := range changes {
		name, key := []byte(change.Bucket), []byte(change.Key)
		bucket, err := tx.CreateBucketIfNotExists(name)
		if err != nil {
			return err
		}
		if old := bucket.Get(key); old != nil {
			if len(old) < checksumSize {
				return fmt.Errorf("%w: %s %q is too short", ErrDamaged, name, key)
			}
			now.count--
			now.sum -= binary.LittleEndian.Uint64(old)
		}
		if change.Value == nil {
			if err := bucket.Delete(key); err != nil {
				return err
			}
			continue
		}
		sum := checksum(name, key, change.Value)
		now.count++
		now.sum += sum
		value := make([]byte, 0, checksumSize+len(change.Value))
		value = append(binary.LittleEndian.AppendUint64(value, sum), change.Value...)
		if err := bucket.Put(key, value); err != nil {
			return err
		}
	}
	return meta.Put(keyContent, now.encode())
}

// guard turns a panic, and a fault on a mapped page, into ErrDamaged.
func guard(f func() error) (err error) {
	before := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(before)
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, r)
		}
	}()
	return f()
}
