package mirror

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestVerifier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		outcome := make(chan error)
		looks := 0
		v := newVerifier(func(context.Context) error { looks++; return <-outcome }, func(error) {}, nil)
		go v.run(ctx)

		confirmed := func() chan error {
			result := make(chan error, 1)
			go func() { result <- v.confirm(ctx, question{}) }()
			synctest.Wait()
			return result
		}
		first := confirmed()
		// These come while a look is under way that began before: they need another.
		second, third := confirmed(), confirmed()
		patient := make(chan error, 1)
		go func() { patient <- v.wait(ctx) }()
		synctest.Wait()
		outcome <- nil
		if err := <-first; err != nil {
			t.Errorf("the first look was good, got %v", err)
		}
		synctest.Wait()
		select {
		case err := <-second:
			t.Errorf("a look that began before was taken for an answer: %v", err)
		default:
		}
		outcome <- errors.New("cut off")
		for _, result := range []chan error{second, third} {
			if err := <-result; !errors.As(err, &unconfirmed{}) {
				t.Errorf("the look failed, got %v", err)
			}
		}
		select {
		case err := <-patient:
			t.Errorf("who waits was told of a look that failed: %v", err)
		default:
		}
		before := time.Now()
		outcome <- nil
		if err := <-patient; err != nil {
			t.Errorf("who waits got %v", err)
		}
		if waited := time.Since(before); waited > lookPause {
			t.Errorf("the next look came after %s", waited)
		}
		if looks != 3 {
			t.Errorf("%d looks for four who waited, want 3", looks)
		}
		if err := func() error { late := confirmed(); outcome <- nil; return <-late }(); !errors.As(err, &unconfirmed{}) {
			t.Errorf("a look has failed since the question, got %v", err)
		}
		if q, err := v.begin(ctx); q.failed != 1 || err != nil {
			t.Errorf("a new question is %+v, %v", q, err)
		}
		// Another cluster is not asked every second.
		go func() { _ = v.wait(ctx) }()
		outcome <- errOther{}
		begun := make(chan question, 1)
		go func() {
			q, err := v.begin(ctx)
			if err == nil {
				begun <- q
			}
		}()
		synctest.Wait()
		select {
		case <-begun:
			t.Error("another cluster was asked")
		default:
		}
		before = time.Now()
		outcome <- nil
		if q := <-begun; q.failed != 2 {
			t.Errorf("the question is %+v", q)
		}
		if waited := time.Since(before); waited < refusedPause/2 {
			t.Errorf("another cluster was asked again after %s", waited)
		}
	})
}

func TestALinkThatComesUpIsNotWaitedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		afresh := make(chan struct{}, 1)
		up := false
		v := newVerifier(func(context.Context) error {
			if !up {
				return errors.New("no route")
			}
			return nil
		}, func(error) {}, afresh)
		go v.run(ctx)
		found := make(chan error, 1)
		go func() { found <- v.wait(ctx) }()
		synctest.Wait()
		time.Sleep(time.Millisecond)
		before := time.Now()
		up = true
		signal(afresh)
		if err := <-found; err != nil || time.Since(before) != 0 {
			t.Errorf("found after %s: %v", time.Since(before), err)
		}
	})
}
