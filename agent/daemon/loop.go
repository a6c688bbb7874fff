package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/agent/boot"
	"rekindle.edge/agent/localapi/hold"
	"rekindle.edge/agent/report"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/agent/timeline"
	"rekindle.edge/agent/timeline/source"
	"rekindle.edge/api/v1alpha1"
)

const (
	// tick is how often deadlines are looked at and writes that failed are tried again.
	tick = time.Second
	// eventQueue is more than a full node sends at once; a source that finds it full waits,
	// with the time already taken.
	eventQueue = 1024
)

// loop owns the tracker, the book of pods and all writes to the store.
type loop struct {
	log     logr.Logger
	machine Machine
	wall    *source.Wall
	store   *snapshot.Store
	book    *snapshot.Book

	// tracker of the open record; nil: none is open.
	tracker *timeline.Tracker
	// unsaved says that the open record has changed since it was last stored.
	unsaved bool
	// failing says that the last write failed, and was told.
	failing bool
	// storeProblem says that the store takes no changes, as it was last reported.
	storeProblem bool

	spec *snapshot.Spec
	// adopted is told of every spec that was taken over.
	adopted    func(*snapshot.Spec)
	recoveries []v1alpha1.Recovery
	// bootID of this boot; reset: in it lost records were found again; lost: some may be
	// missing still.
	bootID      string
	reset, lost bool
	// unclean says that the boot before did not end in an orderly way, as far as is known.
	unclean bool

	// fresh says that the store knows nothing of a policy yet, heard that the API server has
	// said which one applies, or none.
	fresh bool
	heard atomic.Bool

	// serving gives the condition LocalAPIServing, unless it is unset; served is what it was.
	serving func() metav1.Condition
	served  metav1.Condition

	// holding tells what is held back, unless it is nil; held is what it told last.
	holding *hold.Holding
	held    string

	events chan timeline.Event
	orders chan order
	// done is closed when run has returned: nobody takes events any more.
	done chan struct{}
	// closed is closed with the record, or at once if there is none.
	closed chan struct{}
	// changed has room for one signal that reported has changed.
	changed  chan struct{}
	reported atomic.Pointer[report.Facts]
}

// order is something that the loop does for another goroutine.
type order struct {
	do  func() error
	err chan error
}

func newLoop(log logr.Logger, machine Machine, store *snapshot.Store, contents snapshot.Contents, bootID string) *loop {
	l := &loop{
		log: log, machine: machine, store: store,
		wall: source.NewWall(machine.Clock),
		book: snapshot.NewBook(contents),
		spec: contents.Spec, recoveries: contents.Recoveries,
		bootID: bootID, reset: contents.Reset == bootID, lost: contents.Lost != nil,
		adopted: func(*snapshot.Spec) {}, fresh: contents.Mark == nil && contents.Spec == nil,
		events: make(chan timeline.Event, eventQueue), orders: make(chan order),
		done: make(chan struct{}), closed: make(chan struct{}), changed: make(chan struct{}, 1),
	}
	l.publish()
	return l
}

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

// emit hands an event to the loop.
func (l *loop) emit(event timeline.Event) {
	select {
	case l.events <- event:
	case <-l.done:
	}
}

// adoptSpec takes a spec over and returns when it is stored.
func (l *loop) adoptSpec(ctx context.Context, spec *snapshot.Spec) error {
	return l.order(ctx, func() error { return l.takeSpec(spec) })
}

// adoptReported takes lost records from those that were reported, and returns when they are
// stored.
func (l *loop) adoptReported(ctx context.Context, reported []v1alpha1.Recovery) error {
	return l.order(ctx, func() error { return l.takeReported(reported) })
}

func (l *loop) order(ctx context.Context, do func() error) error {
	request := order{do: do, err: make(chan error, 1)}
	select {
	case l.orders <- request:
	case <-l.done:
		return context.Canceled
	case <-ctx.Done():
		return ctx.Err()
	}
	return <-request.err
}

// run works until ctx ends.
func (l *loop) run(ctx context.Context) {
	defer close(l.done)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-l.events:
			l.observe(event)
			// A burst is taken as a whole, and stored once.
			for len(l.events) > 0 {
				l.observe(<-l.events)
			}
			l.attempt(l.settle(), false)
		case request := <-l.orders:
			request.err <- request.do()
		case <-ticker.C:
			l.watchHolding()
			l.attempt(errors.Join(l.settle(), l.flush(ctx)), true)
			l.watchStore()
			l.watchServing()
		}
	}
}

// attempt tells the first of a row of failures. What failed is tried again with the tick;
// when everything that is to be written was, the row is over.
func (l *loop) attempt(err error, everything bool) {
	switch {
	case err != nil && !l.failing:
		l.log.Error(err, "Store cannot be written, trying again")
		l.failing = true
	case err == nil && everything && l.failing:
		l.log.Info("Store can be written again")
		l.failing = false
	}
}

func (l *loop) observe(event timeline.Event) {
	if l.tracker != nil && l.tracker.Observe(event) {
		l.unsaved = true
	}
	switch e := event.(type) {
	case timeline.PodsListed:
		l.book.List(e.Pods, l.remembers)
	case timeline.PodSeen:
		l.book.See(e.Pod, l.remembers)
	case timeline.PodGone:
		l.book.Gone(e.Key)
	}
}

// remembers says whether a pod's readiness from before the restart still counts.
func (l *loop) remembers(key string) bool {
	return l.tracker != nil && l.tracker.Remembers(key, l.machine.Clock.Boot())
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

// retain tells the store how many generations the policy wants.
func (l *loop) retain() {
	var generations int32
	if l.spec != nil {
		generations = l.spec.Spec.Snapshot.RetainGenerations
	}
	l.store.SetRetain(int(generations))
}

func (l *loop) takeSpec(spec *snapshot.Spec) error {
	if err := l.store.PutSpec(spec); err != nil {
		return fmt.Errorf("storing the spec: %w", err)
	}
	l.spec = spec
	l.adopted(spec)
	l.retain()
	if l.tracker != nil && l.tracker.Observe(timeline.TargetSet{Seconds: targetSeconds(spec)}) {
		l.unsaved = true
	}
	l.publish()
	return nil
}

func (l *loop) takeReported(reported []v1alpha1.Recovery) error {
	records, taken, err := l.store.AdoptReported(reported, l.bootID)
	if taken > 0 {
		l.log.Info("Store was new or an older one, taking records from the status", "records", taken)
		l.reset = true
	}
	if err != nil {
		return fmt.Errorf("storing the records that were reported: %w", err)
	}
	l.recoveries, l.lost = records, false
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

// publish lets the reporter see what is stored now.
func (l *loop) publish() {
	facts := report.Facts{Spec: l.spec, Recoveries: l.recoveries, RecordsLost: l.lost}
	if l.reset {
		facts.Findings = []v1alpha1.Finding{{
			Reason: v1alpha1.ReasonStoreReset, Severity: v1alpha1.SeveritySlows,
			Message: "The agent's store was found new, or replaced by an older one; earlier records were taken from this status. Look into the agent's log for what was wrong, and check the disk.",
		}}
	}
	l.reported.Store(&facts)
	l.signal()
}

// signal wakes the reporter: there may be something else to report.
func (l *loop) signal() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}
