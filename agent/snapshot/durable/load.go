package durable

import (
	"encoding/binary"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// load reads and proves everything in the file. Found is the version of its layout.
func load(db *bolt.DB) (records map[Record][]byte, found int, err error) {
	records = map[Record][]byte{}
	err = guard(func() error {
		return db.View(func(tx *bolt.Tx) error {
			meta := tx.Bucket(bucketMeta)
			if meta == nil {
				return fmt.Errorf("%w: it has no version", ErrDamaged)
			}
			if err := openV1(meta.Get(keyVersion), &found); err != nil {
				return fmt.Errorf("%w: its version cannot be read", ErrDamaged)
			}
			switch found {
			case 1:
				return loadV1(tx, records)
			case version:
				return loadAll(tx, records)
			}
			return &VersionError{Found: found}
		})
	})
	return records, found, err
}

func loadAll(tx *bolt.Tx, records map[Record][]byte) error {
	want, err := decodeContent(tx.Bucket(bucketMeta).Get(keyContent))
	if err != nil {
		return err
	}
	var found content
	err = tx.ForEach(func(name []byte, bucket *bolt.Bucket) error {
		if string(name) == string(bucketMeta) {
			return nil
		}
		return bucket.ForEach(func(key, value []byte) error {
			if len(value) < checksumSize || binary.LittleEndian.Uint64(value) != checksum(name, key, value[checksumSize:]) {
				return fmt.Errorf("%w: checksum of %s %q does not match", ErrDamaged, name, key)
			}
			found.count++
			found.sum += binary.LittleEndian.Uint64(value)
			records[Record{string(name), string(key)}] = append([]byte{}, value[checksumSize:]...)
			return nil
		})
	})
	if err != nil {
		return err
	}
	if found != want {
		return fmt.Errorf("%w: it has %d records that are whole, not the %d that were written", ErrDamaged, found.count, want.count)
	}
	return nil
}

// VersionError says that the file is sound, but of an agent that is newer than this one.
type VersionError struct{ Found int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the store has layout version %d, this agent knows up to %d: it is left as it is; install the newer agent, or move it away", e.Found, version)
}

func isNewer(err error) bool {
	var newer *VersionError
	return errors.As(err, &newer)
}
