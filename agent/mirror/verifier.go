package mirror

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// lookTimeout bounds one look at the server.
	lookTimeout = 5 * time.Second
	// lookPause is the longest pause between looks while the server does not answer: a
	// link that is back is noticed within about a second.
	lookPause = time.Second
	// refusedPause is the pause when it answers, and is another cluster or refuses.
	refusedPause = 10 * time.Second
)

// verifier lets one look at the server serve everybody who waits for one, and is the only
// one who asks a server that does not answer.
type verifier struct {
	look func(context.Context) error
	// result is told of every look.
	result func(error)
	wake   chan struct{}
	// afresh ends the pause after a look that has failed.
	afresh <-chan struct{}

	mu      sync.Mutex
	waiting []waiter
	// good says that the last look showed the known cluster, failed counts those that did
	// not.
	good   bool
	failed int
}

// waiter waits for a look that begins after it has come.
type waiter struct {
	outcome chan error
	// patient ones wait until a look succeeds.
	patient bool
}

func newVerifier(look func(context.Context) error, result func(error), afresh <-chan struct{}) *verifier {
	return &verifier{look: look, result: result, wake: make(chan struct{}, 1), afresh: afresh}
}

// wait returns when a look that began after the call has shown the known cluster. It is an
// error only when ctx ends.
func (v *verifier) wait(ctx context.Context) error { return v.join(ctx, true) }

// begin is called before a question whose answer is to be confirmed. It returns at once
// while the known cluster answers, or nothing was heard yet, and else waits for it.
func (v *verifier) begin(ctx context.Context) (question, error) {
	v.mu.Lock()
	q, ok := question{v.failed}, v.good || v.failed == 0
	v.mu.Unlock()
	if ok {
		return q, nil
	}
	if err := v.wait(ctx); err != nil {
		return q, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return question{v.failed}, nil
}

// question is one whose answer is to be confirmed.
type question struct{ failed int }

// confirm says whether an answer may be taken: the next look shows the known cluster, and
// none has failed since the question. An answer that came before a look that failed may be
// another server's, however well the server looks later.
func (v *verifier) confirm(ctx context.Context, q question) error {
	if err := v.join(ctx, false); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.failed != q.failed {
		return unconfirmed{errEarlier}
	}
	return nil
}

var errEarlier = errors.New("a look in between has failed")

func (v *verifier) join(ctx context.Context, patient bool) error {
	w := waiter{outcome: make(chan error, 1), patient: patient}
	v.mu.Lock()
	v.waiting = append(v.waiting, w)
	v.mu.Unlock()
	select {
	case v.wake <- struct{}{}:
	default:
	}
	select {
	case err := <-w.outcome:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// unconfirmed is why an answer was not taken. It is no answer itself, also when the look
// was refused.
type unconfirmed struct{ why error }

func (u unconfirmed) Error() string {
	return "the server that answered could not be recognised afterwards: " + u.why.Error()
}

func (v *verifier) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-v.wake:
		}
		for v.round(ctx) {
		}
	}
}

// round looks once and says whether there is to be another one.
func (v *verifier) round(ctx context.Context) bool {
	v.mu.Lock()
	waiting := v.waiting
	v.waiting = nil
	v.mu.Unlock()
	if len(waiting) == 0 || ctx.Err() != nil {
		return false
	}
	err := v.look(ctx)
	if ctx.Err() != nil {
		return false
	}
	v.result(err)
	v.mu.Lock()
	v.good = err == nil
	if err != nil {
		v.failed++
	}
	v.mu.Unlock()
	var again []waiter
	for _, w := range waiting {
		switch {
		case err == nil:
			w.outcome <- nil
		case w.patient:
			again = append(again, w)
		default:
			w.outcome <- unconfirmed{err}
		}
	}
	if err == nil {
		return true
	}
	v.mu.Lock()
	v.waiting = append(v.waiting, again...)
	v.mu.Unlock()
	pause := lookPause
	if other := (errOther{}); errors.As(err, &other) || answered(err) {
		pause = refusedPause
	}
	return v.pause(ctx, pause/2+rand.N(pause/2))
}

// pause waits, unless there is a reason to look at once.
func (v *verifier) pause(ctx context.Context, d time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	select {
	case <-v.afresh:
	case <-ctx.Done():
	}
	return !errors.Is(ctx.Err(), context.Canceled)
}
