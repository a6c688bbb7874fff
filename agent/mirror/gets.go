package mirror

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"rekindle.edge/agent/snapshot"
)

const (
	// slowly is how often an object that is got is read again; up to a third more.
	slowly = 5 * time.Minute
	// unsettledEvery is how often one is that is on its way to something else: a claim
	// that is not bound, a volume that is not attached, an object the node may not read yet.
	unsettledEvery = 10 * time.Second
	// unsettledAtLeast is the shortest time between two reads of it, when its pods change
	// meanwhile: what they waited for may be there.
	unsettledAtLeast = time.Second
	// parallelGets bounds requests under way: links may be slow.
	parallelGets = 4
)

// gets keeps the objects that a node may get and not watch.
type gets struct {
	*session
	changed chan struct{}

	mu  sync.Mutex
	due map[snapshot.Scope]time.Time
	// moving are objects that are on their way to something else, and when they were read.
	moving map[snapshot.Scope]time.Time
	// stale are objects that were written since they were last asked for.
	stale map[snapshot.Scope]bool
	// known are objects that were read in this epoch. The first answer holds whatever the
	// snapshot has; a later one that is older than what was written through is ignored.
	known map[snapshot.Scope]bool
	epoch int
}

func newGets(s *session) *gets {
	return &gets{session: s, changed: make(chan struct{}, 1), due: map[snapshot.Scope]time.Time{}, moving: map[snapshot.Scope]time.Time{}, stale: map[snapshot.Scope]bool{}, known: map[snapshot.Scope]bool{}, epoch: s.m.currentEpoch()}
}

// turn makes everything due when the line of versions has broken.
func (g *gets) turn() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if epoch := g.m.currentEpoch(); epoch != g.epoch {
		g.epoch = epoch
		clear(g.known)
		for scope := range g.due {
			g.due[scope] = time.Time{}
		}
		signal(g.changed)
	}
}

// want says which objects are to be kept from now on, whenever pods have changed. New ones
// are read at once, and soon those that are on their way to something else.
func (g *gets) want(set objectSet) {
	g.mu.Lock()
	for scope := range g.due {
		if !set[scope] {
			delete(g.due, scope)
			delete(g.known, scope)
			delete(g.moving, scope)
			delete(g.stale, scope)
		}
	}
	for scope := range set {
		due, ok := g.due[scope]
		read, moving := g.moving[scope]
		switch soon := read.Add(unsettledAtLeast); {
		case !ok:
			g.due[scope] = time.Time{}
		case moving && due.After(soon):
			g.due[scope] = soon
		}
	}
	g.mu.Unlock()
	signal(g.changed)
}

// written says that an object has changed; without a name, that one of its kind was made.
func (g *gets) written(scope snapshot.Scope) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for kept := range g.due {
		if kept == scope || scope.Name == "" && kept.Resource == scope.Resource && kept.Namespace == scope.Namespace {
			g.due[kept], g.stale[kept] = time.Time{}, true
			signal(g.changed)
		}
	}
}

// heed takes note of what is written, until ctx ends.
func (g *gets) heed(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case scope := <-g.m.written:
			g.written(scope)
		}
	}
}

func (g *gets) run(ctx context.Context) {
	rounds(ctx, g.changed, func() time.Duration {
		if due := g.take(time.Now()); len(due) > 0 {
			g.read(ctx, due)
		}
		return g.next()
	})
}

// take are the objects that are due.
func (g *gets) take(now time.Time) []snapshot.Scope {
	g.mu.Lock()
	defer g.mu.Unlock()
	var due []snapshot.Scope
	for scope, at := range g.due {
		if !now.Before(at) {
			due = append(due, scope)
			delete(g.stale, scope)
		}
	}
	return due
}

// next is the time until the next object is due, a second at least.
func (g *gets) next() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	next := slowly
	for _, at := range g.due {
		next = min(next, time.Until(at))
	}
	return max(next, time.Second)
}

// answer is what one get has brought.
type answer struct {
	scope  snapshot.Scope
	found  bool
	object snapshot.Object
	err    error
}

// read gets objects and takes what was answered once the server has shown which one it is.
func (g *gets) read(ctx context.Context, due []snapshot.Scope) {
	// A link that is down costs no attempts.
	question, err := g.verify.begin(ctx)
	if err != nil {
		return
	}
	epoch := g.m.currentEpoch()
	answers := make([]answer, len(due))
	slots := make(chan struct{}, parallelGets)
	var running sync.WaitGroup
	for i, scope := range due {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			a := answer{scope: scope}
			a.found, a.object, a.err = g.client.get(ctx, scope)
			answers[i] = a
		})
	}
	running.Wait()
	if g.verify.confirm(ctx, question) != nil || g.m.currentEpoch() != epoch {
		return
	}
	g.turn()
	for _, a := range answers {
		wait := slowly + rand.N(slowly/3)
		if err := g.store(a); err != nil {
			g.log.V(4).Info("Object is not read", "resource", a.scope.Resource.Resource, "reason", err.Error())
		}
		moving := !settled(a)
		if moving {
			wait = unsettledEvery
		}
		g.mu.Lock()
		if _, ok := g.due[a.scope]; ok && !g.stale[a.scope] {
			g.due[a.scope] = time.Now().Add(wait)
			delete(g.moving, a.scope)
			if moving {
				g.moving[a.scope] = time.Now()
			}
		}
		g.mu.Unlock()
	}
}

func (g *gets) store(a answer) error {
	switch {
	case a.err != nil:
		return a.err
	case !a.found:
		return g.m.objects.Sync(a.scope, "", nil)
	case g.first(a.scope) || !g.m.objects.Known(a.scope):
		return g.m.objects.Sync(a.scope, a.object.ResourceVersion, []snapshot.Object{a.object})
	}
	return g.m.objects.Apply(a.scope, snapshot.Modified, a.object)
}

// first says whether an object is read for the first time in this epoch.
func (g *gets) first(scope snapshot.Scope) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	first := !g.known[scope]
	g.known[scope] = true
	return first
}
