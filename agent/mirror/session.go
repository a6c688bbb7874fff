package mirror

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"rekindle.edge/agent/host"
	"rekindle.edge/agent/snapshot"
)

const (
	// settle is how long changes of pods are gathered before the closure is computed.
	settle = 50 * time.Millisecond
	// stepEvery is how often it is noted that collections are in step.
	stepEvery = 5 * time.Second
	// longestSilence is how long a server may be silent at most before it is asked whether
	// it is there. Its watches send a bookmark a minute each.
	longestSilence = 75 * time.Second
)

// session is the mirror's work with one reading of the kubeconfig.
type session struct {
	m      *Mirror
	log    logr.Logger
	node   string
	client *client
	// looker is the same without a limit.
	looker *client
	verify *verifier

	gets *gets
	// warmth is what the entries of the warm list share.
	warmth *budget
	// moved has room for one signal that the closure may be another.
	moved chan struct{}
	// tokensMoved has room for one signal that pods want other tokens.
	tokensMoved chan struct{}

	mu      sync.Mutex
	running map[snapshot.Scope]*running
	closure closure
}

// running is a follower and how to end it.
type running struct {
	stop func()
	done chan struct{}
}

// Run mirrors as node, by config, until ctx ends.
func (m *Mirror) Run(ctx context.Context, node string, config *rest.Config) error {
	c, err := newClient(config)
	if err != nil {
		return err
	}
	looker := *c
	looker.limit = rate.NewLimiter(rate.Inf, 1)
	s := &session{
		m: m, log: logr.FromContextOrDiscard(ctx).WithName("mirror"), node: node, client: c, looker: &looker,
		moved: make(chan struct{}, 1), tokensMoved: make(chan struct{}, 1), running: map[snapshot.Scope]*running{},
	}
	s.verify = newVerifier(s.look, s.looked, m.afresh)
	s.gets = newGets(s)
	s.warmth = &budget{most: warmBytes, used: map[*follower]int{}}
	var all sync.WaitGroup
	all.Go(func() { s.verify.run(ctx) })
	for _, f := range s.base() {
		all.Go(func() { s.follow(ctx, f) })
	}
	all.Go(func() { s.runClosure(ctx) })
	all.Go(func() { s.gets.run(ctx) })
	all.Go(func() { s.gets.heed(ctx) })
	all.Go(func() { s.runWarm(ctx) })
	all.Go(func() { s.runTokens(ctx) })
	all.Go(func() { s.runSteps(ctx) })
	all.Wait()
	return nil
}

// looked notes how a look at the server has ended.
func (s *session) looked(err error) {
	s.m.mu.Lock()
	var other errOther
	isOther := errors.As(err, &other)
	news := isOther && s.m.other == nil
	switch {
	case isOther:
		s.m.other = other
	case err == nil:
		s.m.other = nil
	}
	s.m.mu.Unlock()
	if news {
		s.log.Error(err, "API server is not taken for the node's")
	}
	s.m.tick()
}

func (s *session) nodeTarget() target {
	return target{
		scope:  snapshot.Scope{Resource: nodes, Name: s.node},
		fields: fields.OneTermEqualSelector(metav1.ObjectNameField, s.node).String(),
	}
}

// base are the followers of what kubelet watches, whatever its pods refer to.
func (s *session) base() []*follower {
	ofPods := target{
		scope:  snapshot.Scope{Resource: pods},
		fields: fields.OneTermEqualSelector("spec.nodeName", s.node).String(),
	}
	// Kubelet asks for these, if there are any or not. An older API server has none to give,
	// which nobody misses.
	ofCertificates := s.newFollower(target{scope: snapshot.Scope{Resource: podCertificates}, fields: ofPods.fields}, nil)
	ofCertificates.state.optional = true
	all := []*follower{
		s.newFollower(ofPods, podSink{collection{s.m.objects, ofPods.scope}, s}),
		s.newFollower(s.nodeTarget(), nil),
		ofCertificates,
	}
	for _, resource := range baseCollections {
		all = append(all, s.newFollower(target{scope: snapshot.Scope{Resource: resource}}, nil))
	}
	for _, f := range all {
		f.client, f.first = s.looker, true
	}
	return all
}

var baseCollections = []schema.GroupVersionResource{services, csiDrivers, runtimeClasses, endpointSlices}

func (s *session) newFollower(t target, to sink) *follower {
	if to == nil {
		to = collection{s.m.objects, t.scope}
	}
	return &follower{session: s, client: s.client, target: t, sink: to, state: &scopeState{scope: t.scope}}
}

func (s *session) follow(ctx context.Context, f *follower) {
	s.m.track(f.state)
	defer s.m.untrack(f.state)
	f.run(ctx)
}

// runClosure follows what the pods refer to.
func (s *session) runClosure(ctx context.Context) {
	cancel := s.m.objects.Subscribe(func(event snapshot.Event) {
		switch event.Resource {
		case pods, claims, volumes, csiDrivers:
			signal(s.moved)
		}
	})
	defer cancel()
	views := podViews{}
	signal(s.moved)
	for {
		select {
		case <-ctx.Done():
			s.reconcile(context.Background(), closure{})
			return
		case <-s.moved:
		}
		// A burst is computed once.
		if !host.Sleep(ctx, settle) {
			continue
		}
		objects, _ := s.m.objects.List(pods)
		next := closeOver(s.node, views.all(objects), s.m.objects.Get)
		s.mu.Lock()
		tokens := !maps.EqualFunc(s.closure.tokens, next.tokens, podTokens.equal)
		s.closure = next
		s.mu.Unlock()
		s.reconcile(ctx, next)
		s.gets.want(next.got)
		if tokens {
			signal(s.tokensMoved)
		}
		s.forget(next)
	}
}

// reconcile starts followers of what is new in the closure and ends the others.
func (s *session) reconcile(ctx context.Context, next closure) {
	for scope, r := range s.running {
		if !next.watched[scope] {
			r.stop()
			<-r.done
			delete(s.running, scope)
		}
	}
	for scope := range next.watched {
		if s.running[scope] != nil {
			continue
		}
		t := target{scope: scope}
		if scope.Name != "" {
			t.fields = fields.OneTermEqualSelector(metav1.ObjectNameField, scope.Name).String()
		}
		ctx, stop := context.WithCancel(ctx)
		r := &running{stop: stop, done: make(chan struct{})}
		s.running[scope] = r
		go func() {
			defer close(r.done)
			s.follow(ctx, s.newFollower(t, nil))
		}()
	}
}

// byClosure are resources of which single objects are kept because pods refer to them.
var byClosure = map[schema.GroupVersionResource]bool{
	secrets: true, configMaps: true, trustBundles: true, claims: true, volumes: true,
	attachments: true, csiNodes: true, resourceClaims: true, accounts: true,
}

// forget drops what nothing refers to any more, once the pods are known for sure.
func (s *session) forget(next closure) {
	if !s.listed(snapshot.Scope{Resource: pods}) {
		return
	}
	for _, scope := range s.m.objects.Scopes() {
		if byClosure[scope.Resource] && (scope.Name != "" || scope.Resource == trustBundles) && !next.watched[scope] && !next.got[scope] {
			if err := s.m.objects.Forget(scope); err != nil {
				s.log.Error(err, "Object that no pod refers to cannot be forgotten yet", "resource", scope.Resource.Resource)
			}
		}
	}
}

// listed says whether a scope was taken as a whole in this session.
func (s *session) listed(scope snapshot.Scope) bool {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	for state := range s.m.states {
		if state.scope == scope {
			return state.listed && !state.held
		}
	}
	return false
}

// runSteps notes which collections are in step, and asks a server that is silent.
func (s *session) runSteps(ctx context.Context) {
	for host.Sleep(ctx, stepEvery) {
		if s.m.silent() {
			wait, cancel := context.WithTimeout(ctx, lookTimeout)
			_ = s.verify.wait(wait)
			cancel()
		}
		s.gets.turn()
		s.m.markInStep()
		s.m.tick()
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// rounds calls round at once, and again when the time that it returned is over or something
// has moved, until ctx ends.
func rounds(ctx context.Context, moved <-chan struct{}, round func() time.Duration) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-moved:
		case <-timer.C:
		}
		timer.Reset(round())
	}
}
