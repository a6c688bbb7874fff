package snapshot

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/go-logr/logr"

	"rekindle.edge/agent/snapshot/durable"
	"rekindle.edge/agent/snapshot/vault"
)

func openObjects(m *durable.Map, v *vault.Vault, log logr.Logger) (*Objects, error) {
	o := &Objects{
		durable: m, vault: v, log: log, state: newState(),
		tokens: map[TokenKey]Token{}, remembered: map[string]map[string][]byte{},
		subscribers: map[int]func(Event){}, requests: make(chan request, requestQueue), stopped: make(chan struct{}),
	}
	for _, entry := range []struct {
		bucket string
		load   func(string, []byte) error
	}{
		// Scopes come before objects: one that cannot be decrypted takes its scope away.
		{bucketScopes, o.loadScope}, {bucketObjects, o.loadObject}, {bucketCollections, o.loadCollection},
		{bucketTombstones, o.loadTombstone}, {bucketTokens, o.loadToken}, {bucketOverlay, o.loadOverlay},
		{bucketRemembered, o.loadRemembered},
	} {
		if err := m.Each(entry.bucket, entry.load); err != nil {
			return nil, fmt.Errorf("%s: %w", entry.bucket, err)
		}
	}
	if o.locked > 0 {
		log.Error(v.Problem(), "Secrets and tokens on this node's disk cannot be read and count as absent", "values", o.locked)
	}
	o.state.verdict.doubt = string(m.Get(bucketState, keyDoubt))
	go o.run()
	return o, nil
}

func (o *Objects) loadObject(key string, value []byte) error {
	scope, err := parseScope(key)
	if err != nil {
		return err
	}
	value, ok := o.reveal(durable.Record{Bucket: bucketObjects, Key: key}, scope.Resource, value)
	if !ok {
		o.state.unknown(scope)
		return nil
	}
	object, err := decodeObject(scope.Namespace, scope.Name, value)
	if err != nil {
		return err
	}
	o.state.collection(scope.Resource).objects[ref{scope.Resource, scope.Namespace, scope.Name}] = object
	return nil
}

func (o *Objects) loadScope(key string, _ []byte) error {
	scope, err := parseScope(key)
	o.state.scopes[scope] = true
	return err
}

func (o *Objects) loadCollection(key string, value []byte) error {
	resource, err := parseResource(key)
	if err != nil {
		return err
	}
	if len(value) != 16 {
		return fmt.Errorf("collection %s has %d bytes, not 16", key, len(value))
	}
	c := o.state.collection(resource)
	c.version = binary.BigEndian.Uint64(value)
	if seconds := binary.BigEndian.Uint64(value[8:]); seconds != 0 {
		c.inStep = time.Unix(int64(seconds), 0)
	}
	return nil
}
