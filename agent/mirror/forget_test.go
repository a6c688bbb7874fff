package mirror

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

func TestWhatThePolicyDoesNotListIsForgotten(t *testing.T) {
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	ingresses := schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}
	cases := map[string]struct {
		scope snapshot.Scope
		kept  bool
	}{
		"a collection that it lists is kept":         {snapshot.Scope{Resource: deployments}, true},
		"one that it does not is not":                {snapshot.Scope{Resource: ingresses}, false},
		"the node's pods are kept":                   {snapshot.Scope{Resource: pods}, true},
		"the node is kept":                           {snapshot.Scope{Resource: nodes, Name: "edge-1"}, true},
		"another node is not":                        {snapshot.Scope{Resource: nodes, Name: "edge-2"}, false},
		"services are kept":                          {snapshot.Scope{Resource: services}, true},
		"certificate requests of its pods are kept":  {snapshot.Scope{Resource: podCertificates}, true},
		"a secret that a pod refers to is kept":      {snapshot.Scope{Resource: secrets, Namespace: "shop", Name: "key"}, true},
		"trust bundles that a pod projects are kept": {snapshot.Scope{Resource: trustBundles}, true},
	}
	store, err := snapshot.Open(t.TempDir(), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	for _, tc := range cases {
		if err := store.Objects().Sync(tc.scope, "5", nil); err != nil {
			t.Fatal(err)
		}
	}
	s := &session{m: New(store.Objects(), func() time.Time { return noon }, func() {}), log: logr.Discard(), node: "edge-1"}
	s.forgetWarm([]v1alpha1.WarmResource{{Group: "apps", Resource: "deployments"}})
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if kept := store.Objects().Known(tc.scope); kept != tc.kept {
				t.Errorf("kept %v, want %v", kept, tc.kept)
			}
		})
	}
}
