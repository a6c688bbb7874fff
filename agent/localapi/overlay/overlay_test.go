package overlay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"rekindle.edge/agent/snapshot"
)

// compact compares JSON by content.
func compact(t *testing.T, raw []byte) string {
	t.Helper()
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	out, _ := json.Marshal(value)
	return string(out)
}

func TestPatch(t *testing.T) {
	const (
		strategicType = "application/strategic-merge-patch+json"
		pod           = `{"metadata":{"uid":"u"},"status":{"phase":"Running","newField":{"a":[1]},"conditions":[{"type":"Ready","status":"False"},{"type":"Other","status":"True"}],"podIPs":[{"ip":"10.0.0.1"}],"podIP":"10.0.0.1"}}`
	)
	cases := map[string]struct {
		resource, contentType, patch string
		want                         string
		wantErr                      bool
	}{
		"kubelet's own type merges conditions by type": {
			contentType: strategicType, patch: `{"status":{"$setElementOrder/conditions":[{"type":"Ready"},{"type":"Other"}],"conditions":[{"type":"Ready","status":"True"}]}}`,
			want: `{"metadata":{"uid":"u"},"status":{"phase":"Running","newField":{"a":[1]},"conditions":[{"type":"Ready","status":"True"},{"type":"Other","status":"True"}],"podIPs":[{"ip":"10.0.0.1"}],"podIP":"10.0.0.1"}}`,
		},
		"addresses are exchanged by their key": {
			contentType: strategicType, patch: `{"status":{"podIP":"10.0.0.2","podIPs":[{"ip":"10.0.0.2"},{"$patch":"delete","ip":"10.0.0.1"}]}}`,
			want: `{"metadata":{"uid":"u"},"status":{"phase":"Running","newField":{"a":[1]},"conditions":[{"type":"Ready","status":"False"},{"type":"Other","status":"True"}],"podIPs":[{"ip":"10.0.0.2"}],"podIP":"10.0.0.2"}}`,
		},
		"a field that only a newer kubelet knows": {
			contentType: strategicType + "; charset=utf-8", patch: `{"status":{"newField":{"b":{"c":true}},"newest":[{"name":"x"}]}}`,
			want: `{"metadata":{"uid":"u"},"status":{"phase":"Running","newField":{"a":[1],"b":{"c":true}},"newest":[{"name":"x"}],"conditions":[{"type":"Ready","status":"False"},{"type":"Other","status":"True"}],"podIPs":[{"ip":"10.0.0.1"}],"podIP":"10.0.0.1"}}`,
		},
		"a merge patch": {
			contentType: "application/merge-patch+json", patch: `{"status":{"conditions":null,"newField":null,"podIPs":[]}}`,
			want: `{"metadata":{"uid":"u"},"status":{"phase":"Running","podIPs":[],"podIP":"10.0.0.1"}}`,
		},
		"a JSON patch": {
			contentType: "application/json-patch+json", patch: `[{"op":"replace","path":"/status","value":{}}]`,
			want: `{"metadata":{"uid":"u"},"status":{}}`,
		},
		"an apply":             {contentType: "application/apply-patch+yaml", patch: `{}`, wantErr: true},
		"a patch that is none": {contentType: strategicType, patch: `[`, wantErr: true},
		"no type":              {patch: `{}`, wantErr: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Patch("pods", tc.contentType, []byte(pod), []byte(tc.patch))
			if (err != nil) != tc.wantErr {
				t.Fatalf("error %v, want %v", err, tc.wantErr)
			}
			if err == nil {
				if diff := cmp.Diff(compact(t, []byte(tc.want)), compact(t, got)); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestPlanHandover(t *testing.T) {
	object := func(uid, status string) string {
		return fmt.Sprintf(`{"metadata":{"name":"x","uid":%q,"resourceVersion":"50"},"status":%s}`, uid, status)
	}
	cases := map[string]struct {
		resource     string
		live, wanted string
		uid          string
		patch        string // of the status
		why          string
	}{
		"kubelet's address replaces the one from before the outage": {
			live:   `{"phase":"Running","podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"}]}`,
			wanted: `{"phase":"Running","podIP":"10.0.0.2","podIPs":[{"ip":"10.0.0.2"}]}`,
			patch:  `{"podIP":"10.0.0.2","podIPs":[{"ip":"10.0.0.2"}]}`,
		},
		"conditions of others stay as they are upstream": {
			live:   `{"conditions":[{"type":"Ready","status":"False"},{"type":"example.com/gate","status":"True"}]}`,
			wanted: `{"conditions":[{"type":"example.com/gate","status":"False"},{"type":"Ready","status":"True"},{"type":"Initialized","status":"True"}]}`,
			patch:  `{"conditions":[{"type":"Ready","status":"True"},{"type":"example.com/gate","status":"True"},{"type":"Initialized","status":"True"}]}`,
		},
		"a condition that only the stale copy has is not revived": {
			live:   `{"phase":"Running","conditions":[{"type":"Ready","status":"False"}]}`,
			wanted: `{"phase":"Running","conditions":[{"type":"Ready","status":"False"},{"type":"example.com/old","status":"True"}]}`,
			why:    "has it already",
		},
		"what controllers wrote stays": {
			live:   `{"nominatedNodeName":"edge-2","phase":"Running","qosClass":"Burstable"}`,
			wanted: `{"nominatedNodeName":"edge-1","phase":"Running","qosClass":"Burstable","hostIP":"10.1.0.1"}`,
			patch:  `{"hostIP":"10.1.0.1"}`,
		},
		"what kubelet took away goes": {
			live:   `{"phase":"Failed","reason":"Evicted"}`,
			wanted: `{"phase":"Failed"}`,
			patch:  `{"reason":null}`,
		},
		"a pod that ended upstream stays ended": {
			live: `{"phase":"Failed"}`, wanted: `{"phase":"Running"}`, why: "ended meanwhile as Failed",
		},
		"a pod that ended here ends upstream": {
			live: `{"phase":"Running"}`, wanted: `{"phase":"Succeeded"}`, patch: `{"phase":"Succeeded"}`,
		},
		"another pod of the same name": {uid: "other", live: `{}`, wanted: `{"phase":"Running"}`, why: "replaced"},
		"a live object without status": {live: `null`, wanted: `{"phase":"Running"}`, patch: `{"phase":"Running"}`},
		"a node keeps what controllers and others say of it": {
			resource: "nodes",
			live:     `{"volumesAttached":[{"name":"new"}],"capacity":{"cpu":"2","example.com/gpu":"1"},"conditions":[{"type":"Ready","status":"Unknown"},{"type":"NetworkUnavailable","status":"False"}]}`,
			wanted:   `{"volumesAttached":[{"name":"old"}],"capacity":{"cpu":"4"},"conditions":[{"type":"Ready","status":"True"},{"type":"NetworkUnavailable","status":"True"}]}`,
			patch:    `{"capacity":{"cpu":"4"},"conditions":[{"type":"Ready","status":"True"},{"type":"NetworkUnavailable","status":"False"}]}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			resource := "pods"
			if tc.resource != "" {
				resource = tc.resource
			}
			uid := "uid"
			if tc.uid != "" {
				uid = tc.uid
			}
			p, err := planHandover(resource, []byte(object(uid, tc.live)), Entry{UID: "uid", Status: json.RawMessage(tc.wanted)})
			if err != nil {
				t.Fatal(err)
			}
			if (tc.why == "") != (p.why == "") || !strings.Contains(p.why, tc.why) {
				t.Errorf("why %q, want %q", p.why, tc.why)
			}
			want := ""
			if tc.patch != "" {
				want = compact(t, fmt.Appendf(nil, `{"metadata":{"uid":"uid","resourceVersion":"50"},"status":%s}`, tc.patch))
			}
			got := ""
			if p.patch != nil {
				got = compact(t, p.patch)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

var pods = snapshot.Pods

// memory is a Store.
type memory struct {
	entries map[snapshot.OverlayKey][]byte
	version uint64
	applied []string
	// gone: the mirror has seen the pod go.
	gone bool
}

func (m *memory) PutOverlay(key snapshot.OverlayKey, value []byte) (uint64, error) {
	m.entries[key] = value
	m.version++
	return m.version, nil
}

func (m *memory) DeleteOverlay(key snapshot.OverlayKey) (uint64, error) {
	delete(m.entries, key)
	m.version++
	return m.version, nil
}

func (m *memory) Overlay(key snapshot.OverlayKey) ([]byte, bool) {
	value, ok := m.entries[key]
	return value, ok
}

func (m *memory) Overlays() map[snapshot.OverlayKey][]byte { return maps.Clone(m.entries) }

func (m *memory) Apply(_ snapshot.Scope, _ snapshot.EventType, object snapshot.Object) error {
	m.applied = append(m.applied, object.Name+" "+object.ResourceVersion)
	return nil
}

func (m *memory) Get(schema.GroupVersionResource, string, string) (snapshot.Object, bool) {
	return snapshot.Object{UID: "uid"}, !m.gone
}

func TestHandOver(t *testing.T) {
	const written = `{"metadata":{"name":"web","namespace":"default","uid":"uid","resourceVersion":"9"},"status":{"phase":"Running","podIP":"10.0.0.2"}}`
	live := func(uid, ip string) string {
		return fmt.Sprintf(`{"metadata":{"name":"web","namespace":"default","uid":%q,"resourceVersion":"50","managedFields":[]},"status":{"phase":"Running","podIP":%q}}`, uid, ip)
	}
	gone := apierrors.NewNotFound(pods.GroupResource(), "web")
	conflict := apierrors.NewConflict(pods.GroupResource(), "web", errors.New("changed"))
	forbidden := apierrors.NewForbidden(pods.GroupResource(), "web", errors.New("no relationship found"))
	invalid := apierrors.NewBadRequest("invalid")
	cases := map[string]struct {
		get, patch       string
		getErr, patchErr error
		meanwhile        bool // kubelet writes while it is handed over
		gone             bool // the mirror has seen the pod go
		pending          bool
		applied          []string
	}{
		"it is written and taken over":                       {get: live("uid", "10.0.0.1"), patch: live("uid", "10.0.0.2"), applied: []string{"web 50"}},
		"it is there already":                                {get: live("uid", "10.0.0.2"), applied: []string{"web 50"}},
		"the pod is gone":                                    {getErr: gone},
		"the node may not ask for it yet":                    {getErr: forbidden, pending: true},
		"nor for one that is gone":                           {getErr: forbidden, gone: true},
		"another pod has its name":                           {get: live("other", "10.0.0.1"), applied: []string{"web 50"}},
		"no answer to the question":                          {getErr: errors.New("silence"), pending: true},
		"no answer to the write":                             {get: live("uid", "10.0.0.1"), patchErr: errors.New("silence"), pending: true},
		"somebody else wrote":                                {get: live("uid", "10.0.0.1"), patchErr: conflict, pending: true},
		"the API server does not know the node's rights yet": {get: live("uid", "10.0.0.1"), patchErr: forbidden, pending: true},
		"the API server will never take it":                  {get: live("uid", "10.0.0.1"), patchErr: invalid, applied: []string{"web 50"}},
		"a cache answers with what it had":                   {get: live("uid", "10.0.0.1"), patch: live("uid", "10.0.0.1"), pending: true},
		"a cache answers with something older":               {get: live("uid", "10.0.0.1"), patch: strings.Replace(live("uid", "10.0.0.2"), "50", "49", 1), pending: true},
		"an API server takes what it knows of it":            {get: live("uid", "10.0.0.1"), patch: strings.Replace(live("uid", "10.0.0.9"), "50", "51", 1), applied: []string{"web 51"}},
		"the answer is of another pod":                       {get: live("uid", "10.0.0.1"), patch: strings.Replace(live("other", "10.0.0.2"), "50", "51", 1), pending: true},
		"the answer is no object":                            {get: live("uid", "10.0.0.1"), patch: "OK", pending: true},
		"kubelet has written again, so it stays":             {get: live("uid", "10.0.0.1"), patch: live("uid", "10.0.0.2"), meanwhile: true, pending: true},
	}
	key := snapshot.OverlayKey{Resource: pods, Namespace: "default", Name: "web"}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			store := &memory{entries: map[snapshot.OverlayKey][]byte{}, version: 100, gone: tc.gone}
			var o *Overlay
			o = New(store, func(_ context.Context, method, path, _ string, _ []byte) ([]byte, error) {
				if want := "/api/v1/namespaces/default/pods/web"; !strings.HasPrefix(path, want) {
					t.Errorf("asked for %s", path)
				}
				if method == http.MethodGet {
					return []byte(tc.get), tc.getErr
				}
				if tc.meanwhile {
					if _, err := o.Write(key, []byte(strings.Replace(written, "10.0.0.2", "10.0.0.3", 1))); err != nil {
						t.Error(err)
					}
				}
				return []byte(tc.patch), tc.patchErr
			}, logr.Discard(), "boot-1")
			served, err := o.Write(key, []byte(written))
			if err != nil || !strings.Contains(string(served), `"resourceVersion":"101"`) {
				t.Fatalf("served %s, %v", served, err)
			}
			if _, ok := o.Of(key, types.UID("other")); ok {
				t.Error("an entry is served for another object of the same name")
			}
			err = o.HandOver(t.Context(), key)
			if _, ok := o.Of(key, "uid"); ok != tc.pending {
				t.Errorf("pending %v, want %v (%v)", ok, tc.pending, err)
			}
			if diff := cmp.Diff(tc.applied, store.applied); diff != "" {
				t.Error(diff)
			}
		})
	}
}
