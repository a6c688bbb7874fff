package durable

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
)

// A bbolt file has two heads that commits write in turn. When the newer one cannot be
// read, bbolt silently takes the older one, and the last commit is gone. After a power cut
// in the middle of a commit that is right, nobody was told of it. After a damage it is an
// older content, and nobody can tell one from the other by the file.

// ErrDoubtful says that the content is whole, but may lack the last commit.
var ErrDoubtful = errors.New("one of the two heads of the file cannot be read, the last change may be missing")

// Of bbolt's format, version 2: a page header, and behind it the head with its checksum.
const (
	headOffset   = 16
	headSize     = 64
	headChecksum = 56
	headTxid     = 48
	headMagic    = 0xED0CDAED
)

// checkHeads reads both heads, without mapping the file.
func checkHeads(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	var heads []uint64
	if txid, ok := readHead(file, 0); ok {
		heads = append(heads, txid)
	}
	// The second one is on the second page; which size a page has, a damaged first head
	// does not say.
	for size := int64(1 << 10); size <= 1<<16; size *= 2 {
		if txid, ok := readHead(file, size); ok {
			heads = append(heads, txid)
			break
		}
	}
	switch {
	case len(heads) == 0:
		return fmt.Errorf("%w: neither of its heads can be read", ErrDamaged)
	case len(heads) == 1 || max(heads[0], heads[1])-min(heads[0], heads[1]) != 1:
		return ErrDoubtful
	}
	return nil
}

func readHead(file *os.File, page int64) (txid uint64, ok bool) {
	head := make([]byte, headSize)
	if _, err := file.ReadAt(head, page+headOffset); err != nil {
		return 0, false
	}
	order := binary.NativeEndian
	hash := fnv.New64a()
	_, _ = hash.Write(head[:headChecksum]) // never fails
	return order.Uint64(head[headTxid:]), order.Uint32(head) == headMagic && order.Uint64(head[headChecksum:]) == hash.Sum64()
}
