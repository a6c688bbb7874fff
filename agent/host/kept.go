package host

import (
	"sync"
	"time"
)

// kept is a connection that is made for a question, and kept for a while for the next one.
type kept[C interface{ Close() }] struct {
	mu   sync.Mutex
	conn *C
	// questions were asked so far.
	questions int
}

// with calls f with a connection, and drops the connection if f fails or nobody has used it
// for the time.
func (k *kept[C]) with(connect func() (C, error), linger time.Duration, f func(C) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.conn == nil {
		conn, err := connect()
		if err != nil {
			return err
		}
		k.conn = &conn
	}
	if err := f(*k.conn); err != nil {
		k.drop()
		return err
	}
	k.questions++
	asked := k.questions
	time.AfterFunc(linger, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.questions == asked {
			k.drop()
		}
	})
	return nil
}

// Close drops the connection; the next call makes a new one.
func (k *kept[C]) Close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drop()
}

func (k *kept[C]) drop() {
	if k.conn != nil {
		(*k.conn).Close()
		k.conn = nil
	}
}
