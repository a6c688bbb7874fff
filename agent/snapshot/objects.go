package snapshot

import (
	"encoding/binary"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rekindle.edge/agent/snapshot/durable"
	"rekindle.edge/agent/snapshot/vault"
)

// Buckets of the API's part of the store.
const (
	bucketObjects     = "objects"
	bucketScopes      = "scopes"
	bucketCollections = "collections"
	bucketTombstones  = "tombstones"
	bucketTokens      = "tokens"
	bucketOverlay     = "overlay"
	bucketRemembered  = "remembered"
)

// Resources that are special to the store.
var (
	Pods    = corev1.SchemeGroupVersion.WithResource("pods")
	Nodes   = corev1.SchemeGroupVersion.WithResource("nodes")
	Secrets = corev1.SchemeGroupVersion.WithResource("secrets")
)

// Objects is the part of the API that the node needs, in memory and on disk. Reads never
// wait for the disk. Its methods are safe for concurrent use.
//
// Changes that must be on the disk before anybody hears of them are: the call returns, and
// subscribers are told, after fsync. An error from such a call says that the disk does not
// take it for now; the change holds in memory, subscribers were told, and it is written as
// soon as the disk takes it. Only a change that contradicts its scope is not taken at all.
type Objects struct {
	durable *durable.Map
	vault   *vault.Vault
	log     logr.Logger
	// kubeletDir is kubelet's root directory; empty: nobody asks it.
	kubeletDir string
	// locked counts values that no key opened when the store was loaded.
	locked int
	// podChanges counts pods that came and went.
	podChanges atomic.Uint64

	mu         sync.RWMutex
	state      state
	tokens     map[TokenKey]Token
	remembered map[string]map[string][]byte

	subscribersMu sync.Mutex
	subscribers   map[int]func(Event)
	nextID        int

	requests chan request
	stopped  chan struct{}
}

// request is one change on its way to the writer.
type request struct {
	plan func(*plan) error
	done chan error
}

// requestQueue is more than the mirror sends at once.
const requestQueue = 256

func (c *collection) encode(version uint64) []byte {
	value := binary.BigEndian.AppendUint64(nil, version)
	if c.inStep.IsZero() {
		return binary.BigEndian.AppendUint64(value, 0)
	}
	return binary.BigEndian.AppendUint64(value, uint64(c.inStep.Unix()))
}

// Sync takes a complete list of a scope at a version of the API server's. The scope is
// known from now on: what is not in the list does not exist. A list of all pods ends every
// doubt about the one that was stored.
func (o *Objects) Sync(scope Scope, version string, objects []Object) error {
	if !isPodList(scope) {
		return o.do(func(p *plan) error { return p.sync(scope, version, objects) })
	}
	// What cannot be read now is compared at the next start.
	onNode, _ := o.kubeletPods()
	return o.do(func(p *plan) error {
		if err := p.sync(scope, version, objects); err != nil {
			return err
		}
		p.bury(onNode)
		return nil
	})
}

// Apply takes one change seen by a watch, or what one get has answered. An object that is
// older than the one in the store is ignored.
func (o *Objects) Apply(scope Scope, eventType EventType, object Object) error {
	return o.do(func(p *plan) error { return p.apply(scope, eventType, object) })
}

// Forget ends the knowledge of a scope, and of the objects in it that no other scope has.
func (o *Objects) Forget(scope Scope) error {
	return o.do(func(p *plan) error {
		p.forget(scope)
		return nil
	})
}

// Reset tells subscribers that the versions of a collection begin anew at the given one:
// upstream was restored to an earlier state, or is another. The Sync calls that follow
// bring the content.
func (o *Objects) Reset(resource schema.GroupVersionResource, version string) error {
	return o.do(func(p *plan) error {
		p.versions[resource] = parseVersion(version)
		p.events = append(p.events, Event{Type: Reset, Resource: resource, Version: parseVersion(version)})
		p.urge(durable.Soon)
		return nil
	})
}

// MarkInStep notes that a collection was in step with upstream at t. It reaches the disk
// with the next change.
func (o *Objects) MarkInStep(resource schema.GroupVersionResource, t time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.state.collection(resource)
	c.inStep = t
	// A lazy change cannot fail.
	_ = o.durable.Write(durable.Lazy, collectionChange(resource, c, c.version))
}

func collectionChange(resource schema.GroupVersionResource, c *collection, version uint64) durable.Change {
	return durable.Change{
		Record: durable.Record{Bucket: bucketCollections, Key: resourceKey(resource)}, Value: c.encode(version),
	}
}

// InStep is when a collection was last known in step with upstream, false if never.
func (o *Objects) InStep(resource schema.GroupVersionResource) (time.Time, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	c := o.state.collections[resource]
	if c == nil || c.inStep.IsZero() {
		return time.Time{}, false
	}
	return c.inStep, true
}

// Known says whether everything in a scope is known, also that something is absent.
func (o *Objects) Known(scope Scope) bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.state.known(scope)
}

// Scopes are the scopes that are known.
func (o *Objects) Scopes() []Scope {
	o.mu.RLock()
	defer o.mu.RUnlock()
	scopes := make([]Scope, 0, len(o.state.scopes))
	for scope := range maps.Keys(o.state.scopes) {
		scopes = append(scopes, scope)
	}
	return scopes
}

// Get is an object, false if it is not in the store; Known says whether it may exist.
func (o *Objects) Get(resource schema.GroupVersionResource, namespace, name string) (Object, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	c := o.state.collections[resource]
	if c == nil {
		return Object{}, false
	}
	object, ok := c.objects[ref{resource, namespace, name}]
	return object, ok
}

// List is a collection by namespace and name, and its version. The slice is shared and may
// not be changed.
func (o *Objects) List(resource schema.GroupVersionResource) ([]Object, uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.state.collections[resource]
	if c == nil {
		return nil, 0
	}
	return c.list(), c.version
}

// Subscribe calls f for every event from now on, in their order, one at a time. What an
// event tells is in the store by then: a list at version V holds the events up to V. F must
// not block or change the store. After cancel it may be called once more.
func (o *Objects) Subscribe(f func(Event)) (cancel func()) {
	o.subscribersMu.Lock()
	defer o.subscribersMu.Unlock()
	id := o.nextID
	o.nextID++
	o.subscribers[id] = f
	return func() {
		o.subscribersMu.Lock()
		defer o.subscribersMu.Unlock()
		delete(o.subscribers, id)
	}
}
