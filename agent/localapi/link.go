package localapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"k8s.io/utils/clock"
)

// silenceLimit is how long upstream may be silent before it counts as cut off.
const silenceLimit = 10 * time.Second

// State says whether upstream can be reached.
type State int

// States of the link. It is Unknown from the start of the agent, or since the node first had
// a way out, until something was heard.
const (
	Unknown State = iota
	Connected
	CutOff
)

// Link knows from the outcome of requests whether upstream answers.
type Link struct {
	clock   clock.PassiveClock
	changed func(State, error)

	mu     sync.Mutex
	state  State
	heard  time.Time // when upstream last answered, or it became Unknown
	reason error     // of CutOff
	// waiting ends, with the reason, when the link is lost.
	waiting context.Context
	lose    context.CancelCauseFunc
}

// newLink calls changed, which must not block, with every state that is entered.
func newLink(clock clock.PassiveClock, changed func(State, error)) *Link {
	l := &Link{clock: clock, changed: changed, heard: clock.Now()}
	l.waiting, l.lose = context.WithCancelCause(context.Background())
	return l
}

// State is the present one, with the reason if it is CutOff.
func (l *Link) State() (State, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if silence := l.clock.Since(l.heard); l.state != CutOff && silence >= silenceLimit {
		l.cut(fmt.Errorf("no answer for %s", silence.Round(time.Second)))
	}
	return l.state, l.reason
}

// Silence is for how long upstream has not answered.
func (l *Link) Silence() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.clock.Since(l.heard)
}

// Waiting ends when the link is lost, or has ended if it is; its cause is the reason.
func (l *Link) Waiting() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting
}

// Answered is told of every answer by the API server.
func (l *Link) Answered() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = l.clock.Now()
	if l.state == Connected {
		return
	}
	if l.state == CutOff {
		l.waiting, l.lose = context.WithCancelCause(context.Background())
	}
	l.state, l.reason = Connected, nil
	l.changed(Connected, nil)
}

// Failed is told of every request that ended without an answer. Only what shows that there
// is no way to the server changes the state; all else is silence.
func (l *Link) Failed(err error) {
	if !unreachable(err) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != CutOff {
		l.cut(err)
	}
}

// Anew forgets that upstream was out of reach, and says whether it had been: there was no
// way to it, and now there may be one.
func (l *Link) Anew() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != CutOff {
		return false
	}
	l.state, l.reason, l.heard = Unknown, nil, l.clock.Now()
	l.waiting, l.lose = context.WithCancelCause(context.Background())
	return true
}

func (l *Link) cut(reason error) {
	l.state, l.reason = CutOff, reason
	l.lose(reason)
	l.changed(CutOff, reason)
}

// unreachable tells failures that are final for now from those that waiting may cure.
func unreachable(err error) bool {
	for _, errno := range []syscall.Errno{
		syscall.ECONNREFUSED, syscall.ENETUNREACH, syscall.EHOSTUNREACH,
		syscall.ENETDOWN, syscall.EHOSTDOWN, syscall.EADDRNOTAVAIL,
	} {
		if errors.Is(err, errno) {
			return true
		}
	}
	var dns *net.DNSError
	return errors.As(err, &dns) && !dns.IsTimeout
}
