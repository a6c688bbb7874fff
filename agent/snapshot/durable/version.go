package durable

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// version of the layout. Version 1 had three buckets, JSON values behind eight bytes of
// SHA-256, and no sum of the content.
const version = 2

var bucketsV1 = []string{"state", "pods", "recoveries"}

// openV1 decodes a value of version 1. The version itself stays in this form for good, so
// that every agent can read it.
func openV1(value []byte, v any) error {
	data, err := dataV1(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

func dataV1(value []byte) ([]byte, error) {
	if len(value) < checksumSize {
		return nil, fmt.Errorf("%w: a value is too short", ErrDamaged)
	}
	data := value[checksumSize:]
	sum := sha256.Sum256(data)
	if !bytes.Equal(sum[:checksumSize], value[:checksumSize]) {
		return nil, fmt.Errorf("%w: the checksum of a value does not match", ErrDamaged)
	}
	return data, nil
}

func sealV1(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	return append(sum[:checksumSize:checksumSize], data...), nil
}

func loadV1(tx *bolt.Tx, records map[Record][]byte) error {
	for _, name := range bucketsV1 {
		bucket := tx.Bucket([]byte(name))
		if bucket == nil {
			return fmt.Errorf("%w: bucket %q is missing", ErrDamaged, name)
		}
		err := bucket.ForEach(func(key, value []byte) error {
			data, err := dataV1(value)
			if err != nil {
				return fmt.Errorf("%s %q: %w", name, key, err)
			}
			records[Record{name, string(key)}] = append([]byte{}, data...)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// begin writes the first content of a new file.
func (f *file) begin(records map[Record][]byte) error {
	return guard(func() error {
		return f.db.Update(func(tx *bolt.Tx) error {
			meta, err := tx.CreateBucket(bucketMeta)
			if err != nil {
				return err
			}
			value, err := sealV1(version)
			if err != nil {
				return err
			}
			if err := meta.Put(keyVersion, value); err != nil {
				return err
			}
			changes := make([]Change, 0, len(records))
			for record, value := range records {
				changes = append(changes, Change{record, value})
			}
			return write(tx, changes)
		})
	})
}
