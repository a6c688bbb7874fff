package host

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// fakeConn counts its ends.
type fakeConn struct{ closed *int }

func (f fakeConn) Close() { *f.closed++ }

func TestAConnectionIsKeptForTheNextQuestion(t *testing.T) {
	const linger = 200 * time.Millisecond
	failed := errors.New("failed")
	cases := map[string]struct {
		// pauses before each question, and which of them fails.
		pauses []time.Duration
		fails  int
		// made and closed, in the end and after everything has rested.
		made, closed, rested int
	}{
		"questions close to each other share one": {pauses: []time.Duration{0, linger / 2, linger / 2, linger / 2}, fails: -1, made: 1, closed: 0, rested: 1},
		"one that is late makes another":          {pauses: []time.Duration{0, 2 * linger}, fails: -1, made: 2, closed: 1, rested: 2},
		"one that fails drops it":                 {pauses: []time.Duration{0, 0, 0}, fails: 1, made: 2, closed: 1, rested: 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				made, closed := 0, 0
				var k kept[fakeConn]
				connect := func() (fakeConn, error) {
					made++
					return fakeConn{&closed}, nil
				}
				for i, pause := range tc.pauses {
					time.Sleep(pause)
					var want error
					if i == tc.fails {
						want = failed
					}
					if err := k.with(connect, linger, func(fakeConn) error { return want }); !errors.Is(err, want) {
						t.Errorf("question %d: %v, want %v", i, err, want)
					}
				}
				k.mu.Lock()
				if made != tc.made || closed != tc.closed {
					t.Errorf("%d made and %d closed, want %d and %d", made, closed, tc.made, tc.closed)
				}
				k.mu.Unlock()
				time.Sleep(2 * linger)
				synctest.Wait()
				if closed != tc.rested {
					t.Errorf("%d closed after a rest, want %d", closed, tc.rested)
				}
			})
		})
	}
}

func TestAConnectionThatCannotBeMadeIsAnError(t *testing.T) {
	var k kept[fakeConn]
	refused := errors.New("refused")
	err := k.with(func() (fakeConn, error) { return fakeConn{}, refused }, time.Second, func(fakeConn) error { return nil })
	if !errors.Is(err, refused) {
		t.Errorf("%v, want %v", err, refused)
	}
	k.Close()
}
