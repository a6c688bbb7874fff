package mirror

import (
	"encoding/json"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

// Mirror keeps the snapshot in step with the API server. It outlives sessions: what it has
// seen of the cluster holds for the next one too.
type Mirror struct {
	objects *snapshot.Objects
	wall    func() time.Time
	// changed is called when Report gives something else.
	changed func()

	// specChanged has room for one signal.
	specChanged chan struct{}
	// afresh has room for one signal that there may be a way to the server since now.
	afresh chan struct{}
	// written has room for a burst of objects that were written through the local API.
	written chan snapshot.Scope

	mu sync.Mutex
	// spec is nil while no policy applies.
	spec *v1alpha1.NodeRecoverySpec
	// epoch counts broken lines of versions.
	epoch       int
	line        line
	liveNodeUID string
	doubt       *doubt
	doubtWhy    string
	// heard is when the server was last heard of.
	heard time.Time
	// other is why nothing is taken of the server; nil: it is the known cluster.
	other  error
	states map[*scopeState]bool
	tokens tokenBook
	// issuerRefused is why the issuer's keys cannot be read; empty: they can.
	issuerRefused string
	lastReport    string
	lastTold      time.Time
}

// New returns a mirror into objects. Wall is the time of day. Changed must not block.
func New(objects *snapshot.Objects, wall func() time.Time, changed func()) *Mirror {
	m := &Mirror{objects: objects, wall: wall, changed: changed, specChanged: make(chan struct{}, 1), afresh: make(chan struct{}, 1), written: make(chan snapshot.Scope, 64), states: map[*scopeState]bool{}}
	m.loadLine()
	return m
}

// Adopt takes a spec over; nil: built-in defaults, the closure alone.
func (m *Mirror) Adopt(spec *snapshot.Spec) {
	m.mu.Lock()
	m.spec = nil
	if spec != nil {
		m.spec = &spec.Spec
	}
	m.mu.Unlock()
	select {
	case m.specChanged <- struct{}{}:
	default:
	}
	m.tick()
}

// LinkUp is told that the node has a way to the API server since now.
func (m *Mirror) LinkUp() { signal(m.afresh) }

// Written is told of an object that was written at the API server through the local API; without
// a name, of one that was made. What the node cannot watch is read again then: kubelet registers
// a CSI driver in its CSINode, and must find it there after a restart that is cut off.
func (m *Mirror) Written(scope snapshot.Scope) {
	select {
	case m.written <- scope:
	default: // it is read within minutes, as everything is
	}
}

func (m *Mirror) currentSpec() v1alpha1.NodeRecoverySpec {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.spec == nil {
		return v1alpha1.NodeRecoverySpec{}
	}
	return *m.spec
}

// Offline is what the policy says of a node that is cut off; zero while none applies.
func (m *Mirror) Offline() v1alpha1.Offline { return m.currentSpec().Offline }

// Observes says that the policy wants nothing changed on the node.
func (m *Mirror) Observes() bool { return m.currentSpec().Mode == v1alpha1.ModeObserve }

func (m *Mirror) currentEpoch() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.epoch
}

// hear notes that the server was heard of.
func (m *Mirror) hear() {
	m.mu.Lock()
	m.heard = m.wall()
	m.mu.Unlock()
}

// track shows a follower in the status until untrack.
func (m *Mirror) track(state *scopeState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.states[state] = true
}

func (m *Mirror) untrack(state *scopeState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.states, state)
}

// storedPods are the pods in the snapshot that are not over.
func (m *Mirror) storedPods() []snapshot.Object {
	all, _ := m.objects.List(pods)
	var running []snapshot.Object
	for _, object := range all {
		var pod corev1.Pod
		if json.Unmarshal(object.Raw, &pod) == nil && !over(&pod) {
			running = append(running, object)
		}
	}
	return running
}

// podSink takes lists of pods as far as they are believed.
type podSink struct {
	collection
	*session
}

func (p podSink) sync(version string, objects []snapshot.Object) (time.Duration, error) {
	m := p.m
	stored := m.storedPods()
	node, known := m.objects.Get(nodes, "", p.node)
	m.mu.Lock()
	e := evidence{
		now: m.wall(), stored: stored, listed: objects, sameNode: !known || string(node.UID) == m.liveNodeUID,
		brokenAt: m.line.BrokenAt, before: m.doubt,
	}
	b := believe(e)
	told := m.doubt != nil && b.doubt != nil && maps.Equal(m.doubt.missing, b.doubt.missing) && m.doubtWhy == b.why
	m.doubt, m.doubtWhy = b.doubt, b.why
	m.mu.Unlock()
	if b.doubt != nil && !told {
		p.log.Info("List of pods is not believed, what it lacks is kept", "reason", b.why, "held", len(b.held), "listed", len(objects), "again", b.again.String())
	}
	return b.again, p.objects.Sync(p.scope, version, append(objects[:len(objects):len(objects)], b.held...))
}

// podView is what is computed of one pod, kept while the pod does not change.
type podView struct {
	version string
	pod     pod
}

// podViews decodes the pods of the snapshot, those that have changed anew.
type podViews map[types.UID]podView

func (v podViews) all(objects []snapshot.Object) []pod {
	var all []pod
	present := map[types.UID]bool{}
	for _, object := range objects {
		present[object.UID] = true
		if view, ok := v[object.UID]; ok && view.version == object.ResourceVersion {
			all = append(all, view.pod)
			continue
		}
		var decoded corev1.Pod
		if json.Unmarshal(object.Raw, &decoded) != nil {
			continue
		}
		p := pod{
			podName: podName{object.Namespace, object.Name, string(object.UID)},
			account: decoded.Spec.ServiceAccountName, needs: needsOf(&decoded),
		}
		v[object.UID] = podView{object.ResourceVersion, p}
		all = append(all, p)
	}
	maps.DeleteFunc(v, func(uid types.UID, _ podView) bool { return !present[uid] })
	return all
}
