package overlay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rekindle.edge/agent/snapshot"
)

const ended = `"conditions":[{"type":"DisruptionTarget","status":"True","reason":"TerminationByKubelet","message":"Pod was terminated in response to imminent node shutdown."}]`

func TestEndedByShutdown(t *testing.T) {
	cases := map[string]struct {
		status string
		want   bool
	}{
		"its programs were killed":              {`{"phase":"Failed","reason":"Terminated",` + ended + `}`, true},
		"its programs ended well":               {`{"phase":"Succeeded",` + ended + `}`, true},
		"it was ended before the reason is out": {`{"phase":"Failed",` + ended + `}`, true},
		"it came too late to start":             {`{"phase":"Failed","reason":"NodeShutdown"}`, true},
		"an older kubelet has no condition":     {`{"phase":"Failed","reason":"Terminated"}`, true},
		"it has not ended yet":                  {`{"phase":"Running",` + ended + `}`, false},
		"it was evicted":                        {`{"phase":"Failed","reason":"Evicted"}`, false},
		"it was evicted and ended well":         {`{"phase":"Succeeded","conditions":[{"type":"DisruptionTarget","status":"True","reason":"TerminationByKubelet","message":"The node was low on resource: memory."}]}`, false},
		"it failed by itself":                   {`{"phase":"Failed"}`, false},
		"it ended well by itself":               {`{"phase":"Succeeded"}`, false},
		"it cannot be read":                     {`{`, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := endedByShutdown(json.RawMessage(tc.status)); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

// onNode are the objects that the mirror holds, by name.
type onNode struct {
	*memory
	objects map[string]snapshot.Object
}

func (n onNode) Get(resource schema.GroupVersionResource, _, name string) (snapshot.Object, bool) {
	object, ok := n.objects[resource.Resource+"/"+name]
	return object, ok
}

func TestRestart(t *testing.T) {
	const status = `{"phase":"Succeeded",` + ended + `}`
	cases := map[string]struct {
		policy, status, boot string
		uid                  string // of the pod that has the name now
		gone                 bool
		kept                 bool
	}{
		"a pod that restarts always starts again":          {policy: "Always", status: status},
		"so does one without a policy":                     {status: status},
		"one that runs once stays ended":                   {policy: "Never", status: status, kept: true},
		"one that runs until it succeeds stays ended":      {policy: "OnFailure", status: status, kept: true},
		"another agent in the same boot changes nothing":   {policy: "Always", status: status, boot: "this", kept: true},
		"a status of another kind is handed over":          {policy: "Always", status: `{"phase":"Running"}`, kept: true},
		"one that failed by itself stays so":               {policy: "Always", status: `{"phase":"Failed"}`, kept: true},
		"another pod that has the name now is not touched": {policy: "Always", status: status, uid: "other", kept: true},
		"a pod that is gone is not touched":                {policy: "Always", status: status, gone: true, kept: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			store := &memory{entries: map[snapshot.OverlayKey][]byte{}}
			node := onNode{store, map[string]snapshot.Object{}}
			if tc.uid == "" {
				tc.uid = "uid"
			}
			if !tc.gone {
				node.objects["pods/web"] = snapshot.Object{UID: "uid", Raw: fmt.Appendf(nil, `{"metadata":{"uid":"uid"},"spec":{"restartPolicy":%q}}`, tc.policy)}
			}
			boot := "earlier"
			if tc.boot != "" {
				boot = tc.boot
			}
			ask := func(context.Context, string, string, string, []byte) ([]byte, error) {
				return nil, errors.New("cut off")
			}
			key := snapshot.OverlayKey{Resource: pods, Namespace: "default", Name: "web"}
			written := fmt.Sprintf(`{"metadata":{"name":"web","namespace":"default","uid":%q},"status":%s}`, tc.uid, tc.status)
			if _, err := New(store, ask, logr.Discard(), boot).Write(key, []byte(written)); err != nil {
				t.Fatal(err)
			}
			Restart(New(store, ask, logr.Discard(), "this"), node)
			if _, kept := store.Overlay(key); kept != tc.kept {
				t.Errorf("kept %v, want %v", kept, tc.kept)
			}
		})
	}
}
