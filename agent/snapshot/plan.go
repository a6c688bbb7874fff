package snapshot

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"rekindle.edge/agent/snapshot/durable"
	"rekindle.edge/agent/snapshot/vault"
)

// A change is planned against a stage: which events it makes, which records it writes, and
// how soon they must be on the disk. Nothing here has an effect outside the stage.
//
// Soonest are pods that come or go and whatever is seen for the first time: kubelet acts on
// them, and a power cut must not bring back a list without them. Other changes are written
// within a second. What changes nothing but a heartbeat is written when something else is.

// plan collects what changes come to.
type plan struct {
	*stage
	vault   *vault.Vault
	events  []Event
	changes []durable.Change
	when    durable.When
}

func newPlan(base *state, v *vault.Vault) *plan {
	return &plan{stage: newStage(base), vault: v, when: durable.Lazy}
}

func (p *plan) urge(when durable.When) { p.when = min(p.when, when) }

func (p *plan) emit(t EventType, r ref, object Object, atLeast uint64) {
	p.events = append(p.events, Event{t, r.resource, object, p.raise(r.resource, atLeast)})
}

func (p *plan) sync(scope Scope, version string, objects []Object) error {
	listed := map[ref]bool{}
	for _, object := range objects {
		r := ref{scope.Resource, object.Namespace, object.Name}
		if !scope.covers(r.scope()) {
			return fmt.Errorf("object %s/%s is not in scope %+v", object.Namespace, object.Name, scope)
		}
		listed[r] = true
	}
	// What is gone comes first: its place may have been taken by another of the same name.
	for _, r := range p.within(scope) {
		if !listed[r] {
			p.remove(r, Deleted, 0)
		}
	}
	// In the order in which they changed, so that the versions can be the API server's.
	for _, object := range slices.SortedStableFunc(slices.Values(objects), func(a, b Object) int {
		return cmp.Compare(parseVersion(a.ResourceVersion), parseVersion(b.ResourceVersion))
	}) {
		if r := (ref{scope.Resource, object.Namespace, object.Name}); !p.same(r, object) {
			p.put(r, object)
		}
	}
	if !p.known(scope) {
		p.scopes[scope] = true
		p.changes = append(p.changes, durable.Change{Record: durable.Record{Bucket: bucketScopes, Key: scope.key()}, Value: []byte{}})
		p.urge(durable.Now)
	}
	if isPodList(scope) {
		p.trusted = true
		if p.base.verdict.doubt != "" {
			p.changes = append(p.changes, doubtChange(""))
			p.urge(durable.Now)
		}
	}
	if listed := parseVersion(version); listed > p.version(scope.Resource) {
		p.versions[scope.Resource] = listed
	}
	return nil
}

func (p *plan) apply(scope Scope, t EventType, object Object) error {
	r := ref{scope.Resource, object.Namespace, object.Name}
	if !scope.covers(r.scope()) {
		return fmt.Errorf("object %s/%s is not in scope %+v", object.Namespace, object.Name, scope)
	}
	switch t {
	case Added, Modified:
		// A get and a watch may cross.
		if old, ok := p.get(r); ok && old.UID == object.UID && !newer(object, old) {
			return nil
		}
		p.put(r, object)
	case Deleted:
		old, ok := p.get(r)
		if !ok || old.UID != object.UID {
			return nil
		}
		p.objects[r] = &object
		p.remove(r, Deleted, parseVersion(object.ResourceVersion))
	default:
		return fmt.Errorf("%s is no change to an object", t)
	}
	return nil
}

func (p *plan) forget(scope Scope) {
	if !p.base.scopes[scope] && !p.scopes[scope] {
		return
	}
	p.scopes[scope] = false
	p.changes = append(p.changes, durable.Change{Record: durable.Record{Bucket: bucketScopes, Key: scope.key()}})
	p.urge(durable.Soon)
	for _, r := range p.within(scope) {
		if !p.known(r.scope()) {
			p.remove(r, Forgotten, 0)
		}
	}
}

func isPodList(scope Scope) bool { return scope.Resource == Pods && scope.Name == "" }

// bury lays tombstones of pods that kubelet has a folder of and the API server does not
// know: they were deleted before anybody watched, and must not hold a list later.
func (p *plan) bury(onNode []string) {
	listed := map[string]bool{}
	for _, r := range p.within(Scope{Resource: Pods}) {
		object, _ := p.get(r)
		listed[string(object.UID)] = true
		listed[mirrorOf(object)] = true
	}
	for _, uid := range onNode {
		if _, buried := p.base.tombstones[uid]; !buried && !listed[uid] {
			p.tombstones = append(p.tombstones, uid)
			p.urge(durable.Soon)
		}
	}
}

func (p *plan) put(r ref, object Object) {
	record := objectRecord(r)
	value := encodeObject(object)
	// The bytes are in memory once, with the store's.
	object.Raw = value[len(value)-len(object.Raw):]
	old, ok := p.get(r)
	if ok && old.UID != object.UID {
		p.remove(r, Deleted, 0)
		ok = false
	}
	switch {
	case !ok:
		if _, buried := p.base.tombstones[string(object.UID)]; buried && r.resource == Pods {
			// Kubelet had it before the list that was taken for the whole.
			p.risen = append(p.risen, string(object.UID))
		}
		p.urge(durable.Now)
		p.emit(Added, r, object, parseVersion(object.ResourceVersion))
	case onlyHeartbeat(r, old, object):
		p.urge(durable.Lazy)
		p.emit(Modified, r, object, parseVersion(object.ResourceVersion))
	default:
		p.urge(durable.Soon)
		p.emit(Modified, r, object, parseVersion(object.ResourceVersion))
	}
	p.objects[r] = &object
	p.changes = append(p.changes, durable.Change{Record: record, Value: protect(p.vault, record, r.resource, value)})
}

// same says whether a list brings nothing new of an object. The bytes count: a version can
// come back with another content when upstream was restored to an earlier state.
func (p *plan) same(r ref, object Object) bool {
	old, ok := p.get(r)
	return ok && old.UID == object.UID && old.ResourceVersion == object.ResourceVersion && bytes.Equal(old.Raw, object.Raw)
}

func (p *plan) remove(r ref, t EventType, atLeast uint64) {
	object, ok := p.get(r)
	if !ok {
		return
	}
	p.objects[r] = nil
	p.changes = append(p.changes, durable.Change{Record: objectRecord(r)})
	p.urge(durable.Soon)
	if r.resource == Pods && t == Deleted {
		p.tombstones = append(p.tombstones, string(object.UID))
		p.urge(durable.Now)
	}
	p.emit(t, r, object, atLeast)
}

func objectRecord(r ref) durable.Record {
	return durable.Record{Bucket: bucketObjects, Key: r.scope().key()}
}

// newer compares versions of one object, which are numbers of one line.
func newer(a, b Object) bool {
	versionA, versionB := parseVersion(a.ResourceVersion), parseVersion(b.ResourceVersion)
	return versionA > versionB || (versionA == 0 || versionB == 0) && a.ResourceVersion != b.ResourceVersion
}

// onlyHeartbeat says whether a Node has changed in nothing but its version and the times
// at which kubelet says that nothing has changed.
func onlyHeartbeat(r ref, old, object Object) bool {
	if r.resource != Nodes {
		return false
	}
	before, after := withoutHeartbeat(old.Raw), withoutHeartbeat(object.Raw)
	return before != nil && reflect.DeepEqual(before, after)
}

func withoutHeartbeat(raw []byte) map[string]any {
	var node map[string]any
	if json.Unmarshal(raw, &node) != nil {
		return nil
	}
	if metadata, ok := node["metadata"].(map[string]any); ok {
		delete(metadata, "resourceVersion")
	}
	status, _ := node["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	for _, condition := range conditions {
		if condition, ok := condition.(map[string]any); ok {
			delete(condition, "lastHeartbeatTime")
		}
	}
	return node
}
