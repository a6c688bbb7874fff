package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"rekindle.edge/agent/host"
	"rekindle.edge/agent/snapshot"
)

const (
	// watchLength is how long one watch lasts at least; up to twice that.
	watchLength = 5 * time.Minute
	// The pause after an answer that is a refusal. The Node authorizer learns of a pod's
	// references a moment after the pod is there.
	firstPause, longestPause = 200 * time.Millisecond, 30 * time.Second
	// smallList is how many objects are read again after a broken connection, where a
	// larger collection goes on with its watch.
	smallList = 50
)

// follower keeps one scope in step: it lists, and watches from there on.
type follower struct {
	*session
	client *client
	target target
	sink   sink
	// first are followers that do not wait until the server was seen to answer: there are
	// few, and kubelet waits for them.
	first bool
	// state is shown in the status.
	state *scopeState

	version string
	epoch   int
	size    int
	// budget is what an entry of the warm list has its bytes from; nil: there is no bound.
	budget *budget
	bytes  int
}

// sink is where a follower puts what it sees.
type sink interface {
	// sync takes a full list and returns when to list again, 0: not by itself.
	sync(version string, objects []snapshot.Object) (again time.Duration, err error)
	apply(t snapshot.EventType, object snapshot.Object) error
}

// collection is the sink of a scope that is known as a whole.
type collection struct {
	objects *snapshot.Objects
	scope   snapshot.Scope
}

func (c collection) sync(version string, objects []snapshot.Object) (time.Duration, error) {
	return 0, c.objects.Sync(c.scope, version, objects)
}

func (c collection) apply(t snapshot.EventType, object snapshot.Object) error {
	return c.objects.Apply(c.scope, t, object)
}

// run works until ctx ends.
func (f *follower) run(ctx context.Context) {
	failures := 0
	if f.budget != nil {
		defer f.budget.take(f, 0)
	}
	if !f.first && f.verify.wait(ctx) != nil {
		return
	}
	for ctx.Err() == nil {
		err := f.once(ctx)
		f.state.left(f.m, err)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			// The watch has ended at its time.
			failures = 0
		case errors.As(err, new(tooLargeError)):
			f.log.Error(err, "Entry of the warm list is not kept", "resource", f.target.scope.Resource.Resource)
			f.drop()
			host.Sleep(ctx, tooLargePause/2+rand.N(tooLargePause/2))
		case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
			f.version = ""
		case answered(err):
			pause := min(longestPause, firstPause<<min(failures, 10))
			if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
				pause = max(pause, time.Duration(seconds)*time.Second)
			}
			failures++
			if !apierrors.IsTooManyRequests(err) {
				// A server that is behind refuses the version itself.
				f.version = ""
			}
			host.Sleep(ctx, pause/2+rand.N(pause/2))
		default:
			// Whether the server can be reached is found out in one place.
			failures = 0
			if f.verify.wait(ctx) == nil {
				f.resume()
			}
		}
	}
}

// resume decides after a broken connection whether the watch may go on where it was.
func (f *follower) resume() {
	if f.m.currentEpoch() != f.epoch || f.size <= smallList {
		f.version = ""
	}
}

// once lists if it must, and watches until the watch ends.
func (f *follower) once(ctx context.Context) error {
	length := watchLength + rand.N(watchLength)
	again := false
	if f.version == "" || f.m.currentEpoch() != f.epoch {
		next, err := f.list(ctx)
		if err != nil {
			return err
		}
		if again = next > 0; again {
			// The list is to be read again; until then the watch runs.
			defer func() { f.version = "" }()
			length = next
		}
	}
	// A server that does not keep to the length is left.
	ctx, cancel := context.WithTimeout(ctx, length+time.Second)
	defer cancel()
	began := time.Now()
	err := f.client.watch(ctx, f.target, f.version, length, func() { f.state.watching(f.m) }, f.event)
	switch {
	case answered(err) || errors.As(err, new(tooLargeError)):
		return err
	case time.Since(began) > length-time.Second || again:
		return nil
	case err == nil:
		// A server that goes away ends its watches early; another one may have its address.
		return errEarly
	}
	return err
}

var (
	errEarly  = errors.New("the watch ended before its time")
	errBroken = errors.New("the line of versions is broken")
)

// list reads everything and takes it once the server has shown which one it is.
func (f *follower) list(ctx context.Context) (time.Duration, error) {
	question, err := f.verify.begin(ctx)
	if err != nil {
		return 0, err
	}
	epoch := f.m.currentEpoch()
	if f.budget != nil {
		f.target.bounded, f.target.most = true, f.budget.left(f)
	}
	objects, version, err := f.client.list(ctx, f.target, 0)
	if err != nil {
		return 0, err
	}
	if f.budget != nil {
		f.bytes = sizeOf(objects)
		f.budget.take(f, f.bytes)
	}
	if err := f.verify.confirm(ctx, question); err != nil {
		return 0, err
	}
	if f.m.currentEpoch() != epoch {
		// The list may be of before the restore.
		return f.list(ctx)
	}
	again, err := f.sink.sync(version, objects)
	if err != nil {
		f.log.Error(err, "Snapshot does not take a list", "resource", f.target.scope.Resource.Resource)
	}
	f.version, f.epoch, f.size = version, epoch, len(objects)
	f.state.synced(f.m, again > 0)
	// What nothing refers to may be forgotten now.
	signal(f.moved)
	if again == 0 && f.first {
		f.m.objects.MarkInStep(f.target.scope.Resource, f.m.wall())
	}
	return again, nil
}

func (f *follower) event(c change) error {
	f.m.hear()
	if c.Type == "BOOKMARK" {
		var h header
		if err := json.Unmarshal(c.Object, &h); err != nil || h.Metadata.ResourceVersion == "" {
			return fmt.Errorf("watching %s: a bookmark without a version", f.target.scope.Resource.Resource)
		}
		f.version = h.Metadata.ResourceVersion
		return nil
	}
	t, ok := map[string]snapshot.EventType{"ADDED": snapshot.Added, "MODIFIED": snapshot.Modified, "DELETED": snapshot.Deleted}[c.Type]
	if !ok {
		return fmt.Errorf("watching %s: an event of type %q", f.target.scope.Resource.Resource, c.Type)
	}
	o, err := object(c.Object, "", "")
	if err != nil {
		return fmt.Errorf("watching %s: %w", f.target.scope.Resource.Resource, err)
	}
	if f.m.currentEpoch() != f.epoch {
		return errBroken
	}
	if err := f.grow(t, o); err != nil {
		return err
	}
	if err := f.sink.apply(t, o); err != nil {
		f.log.Error(err, "Snapshot does not take a change", "resource", f.target.scope.Resource.Resource)
	}
	f.version = o.ResourceVersion
	return nil
}
