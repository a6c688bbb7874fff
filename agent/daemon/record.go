package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"rekindle.edge/agent/boot"
	"rekindle.edge/agent/timeline"
	"rekindle.edge/api/v1alpha1"
)

// adoptStart makes the start durable. The mark comes last: until it names this boot, a
// restart of the agent decides the same again. A disk that takes no writes does not keep
// the agent from beginning: the store holds the changes and writes them together later.
func (l *loop) adoptStart(s start, mark boot.Mark) {
	var err error
	if s.interrupted != nil {
		err = l.keep(*s.interrupted)
	}
	if s.open != nil {
		l.tracker = timeline.NewTracker(*s.open)
		err = errors.Join(err, l.store.PutOpen(*s.open))
	}
	if err := errors.Join(err, l.store.PutMark(mark)); err != nil {
		l.log.Error(err, "Start of this boot is not on the disk yet")
		l.failing = true
	}
}

// settle stores the open record if it has changed, and closes it when it is over.
func (l *loop) settle() error {
	if l.tracker == nil {
		return nil
	}
	state := l.tracker.State()
	now := l.machine.Clock.Boot()
	if !l.tracker.Complete() && now < state.Deadline() {
		if !l.unsaved {
			return nil
		}
		if err := l.store.PutOpen(state); err != nil {
			return err
		}
		l.unsaved = false
		return nil
	}
	// The wall clock is read last of all: it may have been set while the node came up.
	var down *time.Duration
	if !l.machine.madeUp() {
		down = boot.Down(state.LastSign, l.machine.Clock.Wall().Add(-now))
	}
	record := state.Close(down)
	l.notePlan(&record)
	if err := l.keep(record); err != nil {
		return err
	}
	l.tracker = nil
	close(l.closed)
	l.log.Info("Recovery is over", "bootID", record.BootID, "result", record.Result, "reason", record.IncompleteReason,
		"expectedPods", record.ExpectedPods, "readyPods", record.ReadyPods, "totalMilliseconds", record.TotalMilliseconds)
	return nil
}

// keep stores a closed record and then reports it.
func (l *loop) keep(record v1alpha1.Recovery) error {
	if err := l.store.CloseRecord(record); err != nil {
		return fmt.Errorf("keeping the record of boot %s: %w", record.BootID, err)
	}
	l.recoveries = slices.DeleteFunc(slices.Clone(l.recoveries), func(old v1alpha1.Recovery) bool { return old.BootID == record.BootID })
	l.recoveries = slices.Insert(l.recoveries, 0, record)
	l.publish()
	return nil
}

// flush stores the pods last seen, if they have changed.
func (l *loop) flush(ctx context.Context) error {
	l.book.Release(l.remembers)
	if !l.book.Dirty() {
		return nil
	}
	changed, gone, lost := l.book.Changes()
	if lost {
		// Pods that stop because the whole node does were Ready when last seen alive.
		ctx, cancel := context.WithTimeout(ctx, stopQuestion)
		defer cancel()
		if stopping, err := l.machine.Units.Stopping(ctx); err == nil && stopping {
			return nil
		}
	}
	if err := l.store.PutPods(changed, gone); err != nil {
		return fmt.Errorf("storing the pods last seen: %w", err)
	}
	l.book.Stored()
	return nil
}
