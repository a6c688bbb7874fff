package daemon

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// emit hands an event to the loop.
func (l *loop) emit(event timeline.Event) {
	select {
	case l.events <- event:
	case <-l.done:
	}
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

// signal wakes the reporter: there may be something else to report.
func (l *loop) signal() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}
