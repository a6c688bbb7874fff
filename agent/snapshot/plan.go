package snapshot

import (
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
		p.put(ref{scope.Resource, object.Namespace, object.Name}, object)
	}
	if !p.known(scope) {
		p.scopes[scope] = true
		p.changes = append(p.changes, durable.Change{Record: durable.Record{Bucket: bucketScopes, Key: scope.key()}, Value: []byte{}})
		p.urge(durable.Now)
	}
	if scope.Resource == Pods && scope.Name == "" && p.base.verdict.doubt != "" {
		p.trusted = true
		p.changes = append(p.changes, doubtChange(""))
		p.urge(durable.Now)
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
		if old, ok := p.get(r); ok && old.UID == object.UID && older(object, old) {
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
	if !p.stage.base.scopes[scope] && !p.scopes[scope] {
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

func (p *plan) put(r ref, object Object) {
	old, ok := p.get(r)
	if ok && old.UID != object.UID {
		p.remove(r, Deleted, 0)
		ok = false
	}
	switch {
	case !ok:
		p.urge(durable.Now)
		p.emit(Added, r, object, parseVersion(object.ResourceVersion))
	case old.ResourceVersion == object.ResourceVersion:
		return
	default:
		if onlyHeartbeat(r, old, object) {
			p.urge(durable.Lazy)
		} else {
			p.urge(durable.Soon)
		}
		p.emit(Modified, r, object, parseVersion(object.ResourceVersion))
	}
	p.objects[r] = &object
	record := objectRecord(r)
	p.changes = append(p.changes, durable.Change{Record: record, Value: protect(p.vault, record, r.resource, encodeObject(object))})
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

// older compares versions of one object, which are numbers of one line.
func older(a, b Object) bool {
	versionA, versionB := parseVersion(a.ResourceVersion), parseVersion(b.ResourceVersion)
	return versionA != 0 && versionA < versionB
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
