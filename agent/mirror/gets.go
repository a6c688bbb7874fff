package mirror

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"rekindle.edge/agent/snapshot"
)

const (
	// slowly is how often an object that is got is read again; up to a third more.
	slowly = 5 * time.Minute
	// unsettledEvery is how often one is that is on its way to something else: a claim
	// that is not bound, a volume that is not attached, an object the node may not read yet.
	unsettledEvery = 10 * time.Second
	// parallelGets bounds requests under way: links may be slow.
	parallelGets = 4
)

// gets keeps the objects that a node may get and not watch.
type gets struct {
	*session
	changed chan struct{}

	mu  sync.Mutex
	due map[snapshot.Scope]time.Time
	// known are objects that were read in this epoch. The first answer holds whatever the
	// snapshot has; a later one that is older than what was written through is ignored.
	known map[snapshot.Scope]bool
	epoch int
}

func newGets(s *session) *gets {
	return &gets{session: s, changed: make(chan struct{}, 1), due: map[snapshot.Scope]time.Time{}, known: map[snapshot.Scope]bool{}, epoch: s.m.currentEpoch()}
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

// want says which objects are to be kept from now on. New ones are read at once.
func (g *gets) want(set objectSet) {
	g.mu.Lock()
	for scope := range g.due {
		if !set[scope] {
			delete(g.due, scope)
			delete(g.known, scope)
		}
	}
	for scope := range set {
		if _, ok := g.due[scope]; !ok {
			g.due[scope] = time.Time{}
		}
	}
	g.mu.Unlock()
	signal(g.changed)
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
		if !settled(a) {
			wait = unsettledEvery
		}
		g.mu.Lock()
		if _, ok := g.due[a.scope]; ok {
			g.due[a.scope] = time.Now().Add(wait)
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

// settled says whether an object may be left alone for a while.
func settled(a answer) bool {
	if a.err != nil {
		// Older servers never let a node read service accounts.
		return a.scope.Resource == accounts && apierrors.IsForbidden(a.err)
	}
	switch a.scope.Resource {
	case claims:
		var claim corev1.PersistentVolumeClaim
		return a.found && json.Unmarshal(a.object.Raw, &claim) == nil && claim.Status.Phase == corev1.ClaimBound
	case attachments:
		var attachment storagev1.VolumeAttachment
		return a.found && json.Unmarshal(a.object.Raw, &attachment) == nil && attachment.Status.Attached
	case volumes, resourceClaims:
		return a.found
	}
	return true
}
