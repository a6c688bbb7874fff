package daemon

import (
	"testing"

	"github.com/go-logr/logr"

	"rekindle.edge/agent/host"
	"rekindle.edge/agent/snapshot"
)

// newStore is an empty store.
func newStore(t *testing.T) *snapshot.Store {
	t.Helper()
	store, err := snapshot.Open(t.TempDir(), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// beginLoop is the loop of an agent that starts in a boot, with what the store has.
func beginLoop(t *testing.T, store *snapshot.Store, bootID string) *loop {
	t.Helper()
	contents, err := store.Load()
	if err != nil {
		t.Fatal(err)
	}
	return newLoop(logr.Discard(), Machine{Clock: host.SystemClock{}}, store, contents, bootID)
}
