package snapshot

import (
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"rekindle.edge/agent/snapshot/durable"
)

// OverlayKey names what was written on the node and not handed over yet.
type OverlayKey struct {
	Resource        schema.GroupVersionResource
	Namespace, Name string
}

func (k OverlayKey) record() durable.Record {
	return durable.Record{Bucket: bucketOverlay, Key: Scope(k).key()}
}

// PutOverlay keeps what was written on the node. It is on the disk before the call returns
// and before subscribers get an Overlaid event. The version is the collection's with it.
func (o *Objects) PutOverlay(key OverlayKey, value []byte) (version uint64, err error) {
	if value == nil {
		return 0, fmt.Errorf("overlay of %s %s/%s has no value", key.Resource.Resource, key.Namespace, key.Name)
	}
	return o.putOverlay(key, value)
}

// DeleteOverlay removes an overlay, with an Overlaid event whose Raw is nil. The version
// is the collection's after it.
func (o *Objects) DeleteOverlay(key OverlayKey) (version uint64, err error) {
	return o.putOverlay(key, nil)
}

func (o *Objects) putOverlay(key OverlayKey, value []byte) (version uint64, err error) {
	err = o.do(func(p *plan) error {
		version = p.overlay(key, value)
		return nil
	})
	return version, err
}

func (p *plan) overlay(key OverlayKey, value []byte) uint64 {
	old, staged := p.overlays[key]
	if !staged {
		old = p.base.overlay[key]
	}
	if old == nil && value == nil {
		return p.version(key.Resource)
	}
	p.overlays[key] = value
	change := durable.Change{Record: key.record()}
	if value != nil {
		change.Value = protect(p.vault, change.Record, key.Resource, value)
	}
	p.changes = append(p.changes, change)
	p.urge(durable.Now)
	version := p.raise(key.Resource, 0)
	p.events = append(p.events, Event{
		Type: Overlaid, Resource: key.Resource, Version: version,
		Object: Object{Namespace: key.Namespace, Name: key.Name, Raw: value},
	})
	return version
}

// Overlays are all overlays. The values are shared and may not be changed.
func (o *Objects) Overlays() map[OverlayKey][]byte {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return maps.Clone(o.state.overlay)
}

// Overlay is one overlay, false if there is none.
func (o *Objects) Overlay(key OverlayKey) ([]byte, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	value, ok := o.state.overlay[key]
	return value, ok
}

func (o *Objects) loadOverlay(key string, value []byte) error {
	scope, err := parseScope(key)
	if err != nil {
		return err
	}
	value, ok := o.reveal(durable.Record{Bucket: bucketOverlay, Key: key}, scope.Resource, value)
	if ok {
		o.state.overlay[OverlayKey(scope)] = value
	}
	return nil
}

// Remember keeps a value that can be found out again when connected, such as an answer to
// a review, under a kind and a key. It is on the disk within a second. Nil forgets it.
func (o *Objects) Remember(kind, key string, value []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.remembered[kind] == nil {
		o.remembered[kind] = map[string][]byte{}
	}
	if value == nil {
		delete(o.remembered[kind], key)
	} else {
		o.remembered[kind][key] = value
	}
	// Only a change that is to be written at once can fail.
	_ = o.durable.Write(durable.Soon, durable.Change{
		Record: durable.Record{Bucket: bucketRemembered, Key: kind + "\x00" + key}, Value: value,
	})
}

// Remembered are the values of a kind by their keys. They are shared and may not be changed.
func (o *Objects) Remembered(kind string) map[string][]byte {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return maps.Clone(o.remembered[kind])
}

func (o *Objects) loadRemembered(key string, value []byte) error {
	kind, key, ok := strings.Cut(key, "\x00")
	if !ok {
		return fmt.Errorf("%q is remembered without a kind", kind)
	}
	if o.remembered[kind] == nil {
		o.remembered[kind] = map[string][]byte{}
	}
	o.remembered[kind][key] = value
	return nil
}
