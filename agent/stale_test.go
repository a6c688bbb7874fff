package main

import (
	"fmt"
	"testing"

	"github.com/go-logr/logr"

	"rekindle.edge/agent/snapshot"
)

func TestAddresses(t *testing.T) {
	store, err := snapshot.Open(t.TempDir(), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	pod := func(i int, rest string) snapshot.Object {
		name := fmt.Sprintf("pod-%d", i)
		return snapshot.Object{Namespace: "default", Name: name, UID: "uid-x", ResourceVersion: fmt.Sprint(i + 1),
			Raw: []byte(fmt.Sprintf(`{"metadata":{"namespace":"default","name":%q,"uid":"uid-x","resourceVersion":"%d"},%s}`, name, i+1, rest))}
	}
	scope := snapshot.Scope{Resource: snapshot.Pods}
	count := addresses(store.Objects())
	if err := store.Objects().Sync(scope, "10", []snapshot.Object{
		pod(0, `"spec":{}`),
		pod(1, `"spec":{"hostNetwork":true}`),
		pod(2, `"spec":{},"status":{"phase":"Succeeded"}`),
		pod(3, `"spec":{},"status":{"phase":"Pending"}`),
	}); err != nil {
		t.Fatal(err)
	}
	if got := count(); got != 2 {
		t.Errorf("%d pods want an address, want 2", got)
	}
	if err := store.Objects().Sync(scope, "11", []snapshot.Object{pod(0, `"spec":{}`)}); err != nil {
		t.Fatal(err)
	}
	if got := count(); got != 1 {
		t.Errorf("%d pods want an address after most have gone, want 1", got)
	}
}
