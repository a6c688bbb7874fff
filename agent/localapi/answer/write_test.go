package answer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"rekindle.edge/agent/localapi/overlay"
	"rekindle.edge/agent/snapshot"
)

// writable adds to a store what it takes to write.
type writable struct{ *store }

func (s writable) PutOverlay(key snapshot.OverlayKey, value []byte) (uint64, error) {
	return s.exchange(key, value), nil
}

func (s writable) DeleteOverlay(key snapshot.OverlayKey) (uint64, error) {
	return s.exchange(key, nil), nil
}

func (s writable) exchange(key snapshot.OverlayKey, value []byte) uint64 {
	s.mu.Lock()
	if s.overlays == nil {
		s.overlays = map[snapshot.OverlayKey][]byte{}
	}
	if value == nil {
		delete(s.overlays, key)
	} else {
		s.overlays[key] = value
	}
	s.version[key.Resource]++
	version := s.version[key.Resource]
	s.mu.Unlock()
	s.told(snapshot.Event{
		Type: snapshot.Overlaid, Resource: key.Resource, Version: version,
		Object: snapshot.Object{Namespace: key.Namespace, Name: key.Name, Raw: value},
	})
	return version
}

func (s writable) Overlay(key snapshot.OverlayKey) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, ok := s.overlays[key]
	return value, ok
}

func (s writable) Overlays() map[snapshot.OverlayKey][]byte { return s.overlays }

func (s writable) Apply(snapshot.Scope, snapshot.EventType, snapshot.Object) error { return nil }

func (everybody) ReviewToken(_ context.Context, review *authenticationv1.TokenReview) error {
	review.Status.Authenticated = true
	return nil
}

func (everybody) ReviewAccess(_ context.Context, review *authorizationv1.SubjectAccessReview) error {
	review.Status.Allowed = true
	return nil
}

func newWriteRig(t *testing.T, reach Reach) *rig {
	t.Helper()
	r := newRig(t, reach, held...)
	r.Overlay = overlay.New(writable{r.store}, func(context.Context, string, string, string, []byte) ([]byte, error) {
		return nil, errors.New("no answer")
	}, testr.New(t), "boot-1")
	r.Replay = func(pod types.UID, namespace, account string, audiences []string, seconds int64, now time.Time) (authenticationv1.TokenRequestStatus, error) {
		if pod != "uid-web-1" || namespace != "default" || account != "till" || seconds != 3607 {
			return authenticationv1.TokenRequestStatus{}, errors.New("no token is kept")
		}
		return authenticationv1.TokenRequestStatus{Token: "kept", ExpirationTimestamp: metav1.NewTime(now.Add(time.Minute))}, nil
	}
	r.fill()
	r.store.put(nodes, `{"kind":"Node","apiVersion":"v1","metadata":{"name":"edge-1","uid":"uid-node","resourceVersion":"80"},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)
	return r
}

func (r *rig) send(t *testing.T, method, path, contentType string, body []byte, header ...string) (int, string, http.Header) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, r.server.URL+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", contentType)
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(answer), response.Header
}

// proto encodes as kubelet does.
func proto(t *testing.T, object runtime.Object, kind schema.GroupVersionKind) []byte {
	t.Helper()
	object.GetObjectKind().SetGroupVersionKind(kind)
	var buffer bytes.Buffer
	if err := protobuf.NewSerializer(nil, nil).Encode(object, &buffer); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// copies is a JSON patch that doubles a value each time.
func copies(times int) []byte {
	operations := []string{`{"op":"add","path":"/status/x","value":["` + strings.Repeat("x", 1000) + `"]}`}
	for range times {
		operations = append(operations, `{"op":"copy","from":"/status/x","path":"/status/x/-"}`)
	}
	return []byte("[" + strings.Join(operations, ",") + "]")
}

func TestWritesWhileCutOff(t *testing.T) {
	const (
		strategic = "application/strategic-merge-patch+json"
		binary    = "application/vnd.kubernetes.protobuf"
		plain     = "application/json"
		podStatus = "/api/v1/namespaces/default/pods/web-1/status"
		leases    = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
		tokens    = "/api/v1/namespaces/default/serviceaccounts/till/token"
		bearer    = "Authorization: Bearer x"
	)
	ready := []byte(`{"metadata":{"uid":"uid-web-1"},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "edge-1", ResourceVersion: "5"}}
	token := func(pod types.UID) *authenticationv1.TokenRequest {
		return &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: ptr.To(int64(3607)), BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", Name: "web-1", UID: pod},
		}}
	}
	pod := func(name string) []byte {
		return proto(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}, corev1.SchemeGroupVersion.WithKind("Pod"))
	}
	cases := map[string]struct {
		method, path, contentType string
		body                      []byte
		header                    string
		want                      string // code and a part of the answer; "upstream": refused here
	}{
		"a pod's status":                     {method: "PATCH", path: podStatus, contentType: strategic, body: ready, want: `200 "status":"True"`},
		"as a merge patch":                   {method: "PATCH", path: podStatus, contentType: "application/merge-patch+json", body: ready, want: `200 "status":"True"`},
		"for a pod of another UID":           {method: "PATCH", path: podStatus, contentType: strategic, body: []byte(`{"metadata":{"uid":"old"},"status":{}}`), want: "409 Conflict"},
		"for a pod that is gone":             {method: "PATCH", path: "/api/v1/namespaces/default/pods/gone/status", contentType: strategic, body: ready, want: "404 NotFound"},
		"in a way that nobody knows":         {method: "PATCH", path: podStatus, contentType: "text/plain", body: ready, want: "415 UnsupportedMediaType"},
		"without a type":                     {method: "PATCH", path: podStatus, body: ready, want: "415 UnsupportedMediaType"},
		"by server-side apply":               {method: "PATCH", path: podStatus, contentType: "application/apply-patch+yaml", body: ready, want: "upstream"},
		"that is no JSON":                    {method: "PATCH", path: podStatus, contentType: strategic, body: []byte(`{"status":`), want: "400 BadRequest"},
		"that is a list":                     {method: "PATCH", path: podStatus, contentType: strategic, body: []byte(`[1]`), want: "400 BadRequest"},
		"that takes the status away":         {method: "PATCH", path: podStatus, contentType: "application/merge-patch+json", body: []byte(`{"metadata":null}`), want: "409 Conflict"},
		"that is larger than any":            {method: "PATCH", path: podStatus, contentType: strategic, body: make([]byte, bodyLimit+1), want: "413 RequestEntityTooLarge"},
		"that copies without end":            {method: "PATCH", path: podStatus, contentType: "application/json-patch+json", body: copies(40), want: "400 BadRequest"},
		"of too many operations":             {method: "PATCH", path: podStatus, contentType: "application/json-patch+json", body: []byte("[" + strings.Repeat(`{"op":"add","path":"/x","value":1},`, 10000) + `{"op":"add","path":"/x","value":1}]`), want: "400 BadRequest"},
		"a lease that is no lease":           {method: "PUT", path: leases + "/edge-1", contentType: binary, body: []byte("k8s\x00\xff\xff"), want: "400 BadRequest"},
		"a lease of another kind":            {method: "PUT", path: leases + "/edge-1", contentType: plain, body: []byte(`{"kind":"Pod","apiVersion":"v1"}`), want: "400 BadRequest"},
		"a token request that is none":       {method: "POST", path: tokens, contentType: plain, body: []byte(`x`), want: "400 BadRequest"},
		"the node's status":                  {method: "PATCH", path: "/api/v1/nodes/edge-1/status", contentType: strategic, body: []byte(`{"status":{"phase":"x"}}`), want: `200 "phase":"x"`},
		"another node's status":              {method: "PATCH", path: "/api/v1/nodes/edge-2/status", contentType: strategic, body: []byte(`{}`), want: "upstream"},
		"a pod's status by somebody else":    {method: "PATCH", path: podStatus, contentType: strategic, body: ready, header: bearer, want: "upstream"},
		"a pod's spec":                       {method: "PATCH", path: "/api/v1/namespaces/default/pods/web-1", contentType: strategic, body: ready, want: "upstream"},
		"the node registers":                 {method: "POST", path: "/api/v1/nodes", contentType: binary, body: []byte("k8s\x00"), want: "409 AlreadyExists"},
		"the node's lease is renewed":        {method: "PUT", path: leases + "/edge-1", contentType: binary, body: proto(t, lease, coordinationv1.SchemeGroupVersion.WithKind("Lease")), want: `200 "resourceVersion":"5"`},
		"the node's lease is made":           {method: "POST", path: leases, contentType: binary, body: proto(t, lease, coordinationv1.SchemeGroupVersion.WithKind("Lease")), want: `201 "kind":"Lease"`},
		"a lease that is made has a version": {method: "POST", path: leases, contentType: binary, body: proto(t, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "edge-1"}}, coordinationv1.SchemeGroupVersion.WithKind("Lease")), want: `201 "resourceVersion":"1"`},
		"somebody's lease by the node":       {method: "PUT", path: leases + "/edge-2", contentType: plain, body: []byte(`{}`), want: "upstream"},
		"a leader's lease":                   {method: "PUT", path: "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/leader", contentType: plain, body: []byte(`{}`), header: bearer, want: "upstream"},
		"an event":                           {method: "POST", path: "/api/v1/namespaces/default/events", contentType: binary, body: proto(t, &corev1.Event{Reason: "Started"}, corev1.SchemeGroupVersion.WithKind("Event")), want: `201 "reason":"Started"`},
		"an event again":                     {method: "PATCH", path: "/api/v1/namespaces/default/events/e", contentType: strategic, body: []byte(`{"count":2}`), want: `200 "count":2`},
		"a mirror pod that is there":         {method: "POST", path: "/api/v1/namespaces/default/pods", contentType: binary, body: pod("web-1"), want: "409 AlreadyExists"},
		"a mirror pod that is not":           {method: "POST", path: "/api/v1/namespaces/default/pods", contentType: binary, body: pod("new"), want: "upstream"},
		"a pod is deleted":                   {method: "DELETE", path: "/api/v1/namespaces/default/pods/web-1", contentType: plain, want: "upstream"},
		"a token that is kept":               {method: "POST", path: tokens, contentType: binary, body: proto(t, token("uid-web-1"), authenticationv1.SchemeGroupVersion.WithKind("TokenRequest")), want: `201 "token":"kept"`},
		"a token with its request's seconds": {method: "POST", path: tokens, contentType: binary, body: proto(t, token("uid-web-1"), authenticationv1.SchemeGroupVersion.WithKind("TokenRequest")), want: `201 "expirationSeconds":3607`},
		"a token that is not":                {method: "POST", path: tokens, contentType: binary, body: proto(t, token("uid-old"), authenticationv1.SchemeGroupVersion.WithKind("TokenRequest")), want: "503 no token is kept"},
		"a token by somebody else":           {method: "POST", path: tokens, contentType: plain, body: []byte(`{}`), header: bearer, want: "upstream"},
		"a review of a token":                {method: "POST", path: "/apis/authentication.k8s.io/v1/tokenreviews", contentType: binary, body: proto(t, &authenticationv1.TokenReview{}, authenticationv1.SchemeGroupVersion.WithKind("TokenReview")), want: `201 "authenticated":true`},
		"a review of a right":                {method: "POST", path: "/apis/authorization.k8s.io/v1/subjectaccessreviews", contentType: binary, body: proto(t, &authorizationv1.SubjectAccessReview{}, authorizationv1.SchemeGroupVersion.WithKind("SubjectAccessReview")), want: `201 "allowed":true`},
		"a certificate":                      {method: "POST", path: "/apis/certificates.k8s.io/v1/certificatesigningrequests", contentType: plain, body: []byte(`{}`), want: "upstream"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newWriteRig(t, CutOff)
			var header []string
			if tc.header != "" {
				header = append(header, tc.header)
			}
			code, body, headers := r.send(t, tc.method, tc.path, tc.contentType, tc.body, header...)
			if tc.want == "upstream" {
				if body != "upstream" {
					t.Errorf("answered with %d %s", code, body)
				}
				return
			}
			wantCode, part, _ := strings.Cut(tc.want, " ")
			if fmt.Sprint(code) != wantCode || !strings.Contains(body, part) {
				t.Errorf("got %d %s, want %s", code, body, tc.want)
			}
			if headers.Get("Retry-After") != "" {
				t.Error("the answer says Retry-After")
			}
		})
	}
}

func TestAStatusIsSeenByWhoWatches(t *testing.T) {
	r := newWriteRig(t, CutOff)
	_, before, _ := r.get(t, "/api/v1/namespaces/default/pods/web-1")
	next := r.follow(t, allPods+"&watch=1&resourceVersion="+listVersion(t, r))
	patch := []byte(`{"status":{"podIP":"10.0.0.9"}}`)
	if code, body, _ := r.send(t, "PATCH", "/api/v1/namespaces/default/pods/web-1/status", "application/strategic-merge-patch+json", patch); code != http.StatusOK {
		t.Fatal(code, body)
	}
	if got := next(); got != "MODIFIED web-1" {
		t.Errorf("the watch tells %q", got)
	}
	_, after, _ := r.get(t, "/api/v1/namespaces/default/pods/web-1")
	if !strings.Contains(after, "10.0.0.9") || version(t, after) <= version(t, before) || !strings.Contains(after, `"newField":7`) {
		t.Errorf("before %s\nafter %s", before, after)
	}
	// The cloud changes the pod: its part is served with kubelet's status.
	r.store.put(pods, podJSON("web-1", "500", `"app":"changed"`))
	if got := next(); got != "MODIFIED web-1" {
		t.Errorf("the watch tells %q", got)
	}
	if _, now, _ := r.get(t, "/api/v1/namespaces/default/pods/web-1"); !strings.Contains(now, "10.0.0.9") || !strings.Contains(now, "changed") {
		t.Errorf("now %s", now)
	}
}

func TestAStatusWhileLinked(t *testing.T) {
	patch := []byte(`{"status":{"podIP":"10.0.0.9"}}`)
	write := func(r *rig) string {
		_, body, _ := r.send(t, "PATCH", "/api/v1/namespaces/default/pods/web-1/status", "application/strategic-merge-patch+json", patch)
		return body
	}
	r := newWriteRig(t, Linked)
	r.link.answer = "taken"
	if got := write(r); got != "taken" || len(r.Overlay.Pending()) != 0 {
		t.Errorf("%s, pending %v: the API server was there", got, r.Overlay.Pending())
	}
	r.link.answer = ""
	r.link.silence = time.Hour
	if got := write(r); !strings.Contains(got, "10.0.0.9") || len(r.Overlay.Pending()) != 1 {
		t.Errorf("%s, pending %v: whether it was taken is not known", got, r.Overlay.Pending())
	}
	r.link.answer, r.link.silence = "taken", 0
	if got := write(r); !strings.Contains(got, "10.0.0.9") {
		t.Errorf("%s: a change of what was written here must not overtake it", got)
	}
}

func listVersion(t *testing.T, r *rig) string {
	t.Helper()
	_, body, _ := r.get(t, allPods)
	return fmt.Sprint(version(t, body))
}

func version(t *testing.T, body string) int {
	t.Helper()
	var object struct {
		Metadata struct {
			ResourceVersion int `json:",string"`
		}
	}
	if err := json.Unmarshal([]byte(body), &object); err != nil {
		t.Fatal(err)
	}
	return object.Metadata.ResourceVersion
}

func TestAClientListsWhatItWrote(t *testing.T) {
	r := newRig(t, Linked, held...).fill()
	r.link.written = func() {
		time.AfterFunc(100*time.Millisecond, func() { r.store.put(configMaps, configMapJSON("settings", "200")) })
	}
	r.send(t, "PUT", "/api/v1/namespaces/default/configmaps/settings", "application/json", []byte("{}"))
	if _, body, _ := r.get(t, oneConfig+"settings"); !strings.Contains(body, `"resourceVersion":"200"`) {
		t.Errorf("the list has what was before: %s", body)
	}
	r.link.written = nil // changes nothing
	r.send(t, "PUT", "/api/v1/namespaces/default/configmaps/settings", "application/json", []byte("{}"))
	begin := time.Now()
	r.get(t, oneConfig+"settings&resourceVersion=0")
	if waited := time.Since(begin); waited > ownWrites/2 {
		t.Errorf("a list to which any version will do waited %s", waited)
	}
	r.get(t, oneConfig+"settings")
	if waited := time.Since(begin); waited > 2*ownWrites {
		t.Errorf("a list waited %s for a write that changed nothing", waited)
	}
}
