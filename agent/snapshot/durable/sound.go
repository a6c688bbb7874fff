package durable

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// A start waits for the check, and a process of its own takes longer to begin than to check.
// So a file is first read by what follows: a reader of bbolt's format, version 2, over a copy
// in memory. It cannot fault, comes to an end, since no page is read twice, and takes a file
// only if everything is as bbolt writes it, page by page, and every record is proven. What it
// does not take is not called damaged: the checking process finds out what it is.

const (
	pageHeader  = 16
	elementSize = 16
	// bucketHeader is before the inlined page of a small bucket.
	bucketHeader = 16
	// deepestPage is more levels than a tree of any size has.
	deepestPage = 32
	// largestSound bounds the copy.
	largestSound = 1 << 28
)

// Flags of pages.
const (
	branchPage   = 0x01
	leafPage     = 0x02
	headPage     = 0x04
	freelistPage = 0x10
)

// Of a head, behind its page's header.
const (
	headVersion  = 4
	headPageSize = 8
	headRoot     = 16
	headFreelist = 32
	headPages    = 40

	formatVersion = 2
)

// errUnsound says that a file is not as it usually is.
var errUnsound = errors.New("not as it is written")

var order = binary.NativeEndian

// loadSound opens the file if it is sound beyond doubt, and says whether it has.
func (m *Map) loadSound() bool {
	records, txid, err := readSound(m.path())
	if err != nil {
		m.log.V(4).Info("Store is checked closely", "reason", err.Error())
		return false
	}
	err = guard(func() error {
		db, err := openDB(m.path(), false)
		if err != nil {
			return err
		}
		// The lock is held only now.
		err = db.View(func(tx *bolt.Tx) error {
			if uint64(tx.ID()) != txid {
				return errors.New("another process has written it")
			}
			return nil
		})
		if err != nil {
			return errors.Join(err, db.Close())
		}
		m.records, m.file = records, &file{db}
		return nil
	})
	return err == nil
}

// readSound reads all records, and the number of the last commit.
func readSound(path string) (records map[Record][]byte, txid uint64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = file.Close() }()
	r := &soundReader{records: map[Record][]byte{}}
	// Bounds are checked; should one be missing, it is no more than an unsound file.
	err = guard(func() error { return r.read(file) })
	return r.records, r.txid, err
}

// soundReader reads one file.
type soundReader struct {
	text     []byte
	pageSize int
	txid     uint64
	// seen are the pages that are in use or free.
	seen    []bool
	records map[Record][]byte
	found   content
	meta    map[string][]byte
}

func (r *soundReader) read(file *os.File) error {
	head, err := r.newest(file)
	if err != nil {
		return err
	}
	pages := order.Uint64(head[headPages:])
	if pages < 4 || pages > uint64(largestSound/r.pageSize) {
		return errUnsound
	}
	// Beside the heap, which would stay larger for good. Nothing of it is kept.
	r.text, err = unix.Mmap(-1, 0, int(pages)*r.pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_POPULATE)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Munmap(r.text) }()
	if _, err := io.ReadFull(io.NewSectionReader(file, 0, int64(len(r.text))), r.text); err != nil {
		return err
	}
	r.seen = make([]bool, pages)
	r.seen[0], r.seen[1] = true, true
	if err := r.freelist(order.Uint64(head[headFreelist:])); err != nil {
		return err
	}
	r.meta = map[string][]byte{}
	if err := r.page(order.Uint64(head[headRoot:]), nil, nil, deepestPage, r.bucket); err != nil {
		return err
	}
	for _, seen := range r.seen {
		if !seen {
			return errUnsound
		}
	}
	return r.prove()
}

// newest is the head of the last commit. Both must be good, and of commits in a row.
func (r *soundReader) newest(file *os.File) ([]byte, error) {
	first, err := soundHead(file, 0)
	if err != nil {
		return nil, err
	}
	r.pageSize = int(order.Uint32(first[headPageSize:]))
	if r.pageSize < 1<<10 || r.pageSize > 1<<16 || r.pageSize&(r.pageSize-1) != 0 {
		return nil, errUnsound
	}
	second, err := soundHead(file, r.pageSize)
	if err != nil {
		return nil, err
	}
	older, newer := first, second
	if order.Uint64(older[headTxid:]) > order.Uint64(newer[headTxid:]) {
		older, newer = newer, older
	}
	r.txid = order.Uint64(newer[headTxid:])
	if order.Uint64(older[headTxid:])+1 != r.txid || !bytes.Equal(older[:headRoot], newer[:headRoot]) {
		return nil, errUnsound
	}
	return newer, nil
}

// soundHead is the head on a page.
func soundHead(file *os.File, at int) ([]byte, error) {
	page := make([]byte, headOffset+headSize)
	if _, err := file.ReadAt(page, int64(at)); err != nil {
		return nil, err
	}
	head := page[headOffset:]
	hash := fnv.New64a()
	_, _ = hash.Write(head[:headChecksum]) // never fails
	good := order.Uint16(page[8:]) == headPage &&
		order.Uint32(head) == headMagic && order.Uint32(head[headVersion:]) == formatVersion && order.Uint64(head[headChecksum:]) == hash.Sum64()
	if !good {
		return nil, errUnsound
	}
	return head, nil
}

// take gives a page with its overflow, which nobody may have taken before.
func (r *soundReader) take(id uint64) ([]byte, error) {
	if id < 2 || id >= uint64(len(r.seen)) {
		return nil, errUnsound
	}
	page := r.text[int(id)*r.pageSize:]
	more := uint64(order.Uint32(page[12:]))
	if order.Uint64(page) != id || more >= uint64(len(r.seen))-id {
		return nil, errUnsound
	}
	for i := id; i <= id+more; i++ {
		if r.seen[i] {
			return nil, errUnsound
		}
		r.seen[i] = true
	}
	return page[:(int(more)+1)*r.pageSize], nil
}

// freelist takes the list of free pages, and these.
func (r *soundReader) freelist(id uint64) error {
	page, err := r.take(id)
	if err != nil {
		return err
	}
	list, count := page[pageHeader:], uint64(order.Uint16(page[10:]))
	if count == 0xffff {
		// The number does not fit, and is the first element.
		count, list = order.Uint64(list), list[8:]
	}
	if order.Uint16(page[8:]) != freelistPage || count > uint64(len(list)/8) {
		return errUnsound
	}
	for i := range int(count) {
		free := order.Uint64(list[8*i:])
		if free < 2 || free >= uint64(len(r.seen)) || r.seen[free] {
			return errUnsound
		}
		r.seen[free] = true
	}
	return nil
}

// page reads a page and those below it. Its keys rise, from the lowest to below the end; nil:
// there is no such bound.
func (r *soundReader) page(id uint64, lowest, end []byte, depth int, leaf func(key, value []byte, bucket bool) error) error {
	if depth == 0 {
		return errUnsound
	}
	page, err := r.take(id)
	if err != nil {
		return err
	}
	if order.Uint16(page[8:]) == leafPage {
		return leaves(page, lowest, end, leaf)
	}
	count := int(order.Uint16(page[10:]))
	if order.Uint16(page[8:]) != branchPage || count == 0 || pageHeader+count*elementSize > len(page) {
		return errUnsound
	}
	keys := make([][]byte, count)
	for i := range keys {
		element := page[pageHeader+i*elementSize:]
		if keys[i], err = part(element, uint64(order.Uint32(element)), uint64(order.Uint32(element[4:]))); err != nil {
			return err
		}
		if !rises(keys[i], lowest, end, i == 0) {
			return errUnsound
		}
		lowest = keys[i]
	}
	for i, key := range keys {
		next := end
		if i+1 < count {
			next = keys[i+1]
		}
		if err := r.page(order.Uint64(page[pageHeader+i*elementSize+8:]), key, next, depth-1, leaf); err != nil {
			return err
		}
	}
	return nil
}

// leaves reads the elements of a leaf.
func leaves(page, lowest, end []byte, leaf func(key, value []byte, bucket bool) error) error {
	count := int(order.Uint16(page[10:]))
	if pageHeader+count*elementSize > len(page) {
		return errUnsound
	}
	for i := range count {
		element := page[pageHeader+i*elementSize:]
		flags, at := order.Uint32(element), uint64(order.Uint32(element[4:]))
		size := uint64(order.Uint32(element[8:]))
		key, err := part(element, at, size)
		if err != nil {
			return err
		}
		value, err := part(element, at+size, uint64(order.Uint32(element[12:])))
		if err != nil {
			return err
		}
		if flags > 1 || !rises(key, lowest, end, i == 0) {
			return errUnsound
		}
		lowest = key
		if err := leaf(key, value, flags == 1); err != nil {
			return err
		}
	}
	return nil
}

// part is a key or a value, whose place counts from its element.
func part(element []byte, at, size uint64) ([]byte, error) {
	if at < elementSize || at+size > uint64(len(element)) {
		return nil, errUnsound
	}
	return element[at : at+size : at+size], nil
}

// rises says whether a key is in its place. The first one of a page may be the lowest.
func rises(key, lowest, end []byte, first bool) bool {
	if len(key) == 0 || end != nil && bytes.Compare(key, end) >= 0 {
		return false
	}
	if lowest == nil {
		return true
	}
	order := bytes.Compare(lowest, key)
	return order < 0 || order == 0 && first
}

// bucket reads a bucket, which is a value of the root.
func (r *soundReader) bucket(name, value []byte, bucket bool) error {
	if !bucket || len(value) < bucketHeader {
		return errUnsound
	}
	read := r.recordsOf(name)
	if root := order.Uint64(value); root != 0 {
		return r.page(root, nil, nil, deepestPage, read)
	}
	inlined := value[bucketHeader:]
	if len(inlined) < pageHeader || order.Uint64(inlined) != 0 || order.Uint16(inlined[8:]) != leafPage || order.Uint32(inlined[12:]) != 0 {
		return errUnsound
	}
	return leaves(inlined, nil, nil, read)
}

// recordsOf keeps the records of a bucket that are proven.
func (r *soundReader) recordsOf(name []byte) func(key, value []byte, bucket bool) error {
	if bytes.Equal(name, bucketMeta) {
		return func(key, value []byte, bucket bool) error {
			if bucket {
				return errUnsound
			}
			r.meta[string(key)] = value
			return nil
		}
	}
	text := string(name)
	return func(key, value []byte, bucket bool) error {
		if bucket || len(value) < checksumSize {
			return errUnsound
		}
		sum := binary.LittleEndian.Uint64(value)
		if sum != checksum(name, key, value[checksumSize:]) {
			return errUnsound
		}
		r.found.count++
		r.found.sum += sum
		// A copy of its own: the file has more than the records.
		r.records[Record{text, string(key)}] = bytes.Clone(value[checksumSize:])
		return nil
	}
}

// prove compares what was found with what the last commit has written.
func (r *soundReader) prove() error {
	var found int
	if err := openV1(r.meta[string(keyVersion)], &found); err != nil {
		return err
	}
	want, err := decodeContent(r.meta[string(keyContent)])
	if err != nil {
		return err
	}
	if found != version || want != r.found {
		return fmt.Errorf("%w: version %d, %d records", errUnsound, found, r.found.count)
	}
	return nil
}
