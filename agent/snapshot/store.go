// Package snapshot is the agent's durable store: boot records, the applied spec, the pods
// last seen, and the part of the API that the node needs to start without the API server.
// All of it is in memory and in one bbolt file; beside it the sign of life, which is the
// only thing that is written while nothing happens.
package snapshot

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"

	"rekindle.edge/agent/snapshot/durable"
	"rekindle.edge/agent/snapshot/vault"
)

// Store is the open store. Its methods are safe for concurrent use. A call that writes
// returns after fsync; an error says that the disk does not take the change for now, which
// then holds in memory and is written later.
type Store struct {
	dir     string
	durable *durable.Map
	objects *Objects
	// records is held while closed records are exchanged.
	records sync.Mutex

	retain atomic.Int32
	// policyChanges counts how often the applied spec was kept.
	policyChanges atomic.Uint64
	stop          context.CancelFunc
	closing       <-chan struct{}
	sealed        chan struct{}
}

// Open opens the store in dir and makes what is missing. In place of a damaged file it
// takes the newest sealed generation. An error may go away: another process holds the
// file, or it cannot be read.
func Open(dir string, log logr.Logger, with ...Option) (*Store, error) {
	var o options
	for _, option := range with {
		option(&o)
	}
	ctx, stop := context.WithCancel(context.Background())
	// The key is unsealed while the file is checked.
	unlocked := make(chan *vault.Vault, 1)
	go func() { unlocked <- vault.Open(ctx, dir, o.sealer, log) }()
	var v *vault.Vault
	m, doubt, err := durable.Open(dir, durable.Options{Log: log, Checker: o.checker, BeforeWrite: func() error { return v.Save() }})
	v = <-unlocked
	if err != nil {
		stop()
		return nil, err
	}
	if doubt != "" {
		_ = m.Write(durable.Lazy, doubtChange(string(doubt)))
	}
	if doubt != "" || m.Get(bucketState, keyMark) == nil {
		lost, err := lostChange(m)
		if err != nil {
			stop()
			return nil, errors.Join(err, m.Close())
		}
		_ = m.Write(durable.Lazy, lost)
	}
	objects, err := openObjects(m, v, log)
	if err != nil {
		stop()
		return nil, errors.Join(err, m.Close())
	}
	objects.adoptInStep(lastInStep(dir))
	s := &Store{dir: dir, durable: m, objects: objects, stop: stop, closing: ctx.Done(), sealed: make(chan struct{})}
	s.SetRetain(0)
	objects.kubeletDir = o.kubeletDir
	objects.compareKubelet()
	if trusted, reason := objects.Trusted(); !trusted && (doubt != "" || objects.state.podsKnown()) {
		log.Error(nil, "List of pods is held", "reason", reason)
	}
	if objects.doubtful() && o.sandboxes != nil {
		go objects.compareRuntime(ctx, o.sandboxes)
	}
	// What the disk does not take now is tried again later.
	_ = m.Write(durable.Now)
	go s.sealLoop(log)
	return s, nil
}

// Close writes what is left and closes the file.
func (s *Store) Close() error {
	s.stop()
	<-s.sealed
	s.objects.close()
	return s.durable.Close()
}

// Objects is the API's part of the store.
func (s *Store) Objects() *Objects { return s.objects }

// Problem says why changes do not reach the disk; nil: they do.
func (s *Store) Problem() error { return s.durable.Problem() }
