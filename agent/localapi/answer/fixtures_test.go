package answer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"

	"rekindle.edge/agent/snapshot"
)

var (
	pods       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	nodes      = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	claims     = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	widgets    = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
)

// store is a snapshot in memory.
type store struct {
	mu       sync.Mutex
	objects  map[schema.GroupVersionResource][]snapshot.Object
	version  map[schema.GroupVersionResource]uint64
	known    map[snapshot.Scope]bool
	inStep   map[schema.GroupVersionResource]time.Time
	told     func(snapshot.Event)
	overlays map[snapshot.OverlayKey][]byte
	// held is why the pod list is held back.
	held string
}

func newStore(known ...snapshot.Scope) *store {
	s := &store{
		objects: map[schema.GroupVersionResource][]snapshot.Object{}, version: map[schema.GroupVersionResource]uint64{},
		known: map[snapshot.Scope]bool{}, inStep: map[schema.GroupVersionResource]time.Time{},
	}
	for _, scope := range known {
		s.known[scope] = true
	}
	return s
}

func (s *store) Trusted() (bool, string) { return s.held == "", s.held }

func (s *store) Known(scope snapshot.Scope) bool {
	return s.known[scope] || s.known[snapshot.Scope{Resource: scope.Resource, Namespace: scope.Namespace}] || s.known[snapshot.Scope{Resource: scope.Resource}]
}

func (s *store) Get(resource schema.GroupVersionResource, namespace, name string) (snapshot.Object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.objects[resource], func(o snapshot.Object) bool { return o.Namespace == namespace && o.Name == name })
	if i < 0 {
		return snapshot.Object{}, false
	}
	return s.objects[resource][i], true
}

func (s *store) List(resource schema.GroupVersionResource) ([]snapshot.Object, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.objects[resource]), s.version[resource]
}

func (s *store) InStep(resource schema.GroupVersionResource) (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.inStep[resource]
	return at, ok
}

func (s *store) Subscribe(f func(snapshot.Event)) func() {
	s.told = f
	return func() {}
}

// put adds or changes an object, given as JSON.
func (s *store) put(resource schema.GroupVersionResource, raw string) {
	object := decode(raw)
	s.mu.Lock()
	kind := snapshot.Added
	i := slices.IndexFunc(s.objects[resource], func(o snapshot.Object) bool { return o.Namespace == object.Namespace && o.Name == object.Name })
	if i >= 0 {
		kind = snapshot.Modified
		s.objects[resource][i] = object
	} else {
		s.objects[resource] = append(s.objects[resource], object)
	}
	n, _ := strconv.ParseUint(object.ResourceVersion, 10, 64)
	s.version[resource] = max(s.version[resource]+1, n)
	event := snapshot.Event{Type: kind, Resource: resource, Object: object, Version: s.version[resource]}
	s.mu.Unlock()
	s.told(event)
}

func (s *store) remove(resource schema.GroupVersionResource, name string) {
	s.mu.Lock()
	i := slices.IndexFunc(s.objects[resource], func(o snapshot.Object) bool { return o.Name == name })
	object := s.objects[resource][i]
	s.objects[resource] = slices.Delete(s.objects[resource], i, i+1)
	s.version[resource]++
	event := snapshot.Event{Type: snapshot.Deleted, Resource: resource, Object: object, Version: s.version[resource]}
	s.mu.Unlock()
	s.told(event)
}

func decode(raw string) snapshot.Object {
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal([]byte(raw), &object); err != nil {
		panic(err)
	}
	return snapshot.Object{
		Namespace: object.Namespace, Name: object.Name, UID: types.UID(object.UID),
		ResourceVersion: object.ResourceVersion, Raw: []byte(raw),
	}
}

func podJSON(name, version, labels string) string {
	return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":"default","uid":"uid-%s","resourceVersion":%q,"labels":{%s}},"spec":{"nodeName":"edge-1","newField":7},"status":{"phase":"Running"}}`,
		name, name, version, labels)
}

func configMapJSON(name, version string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"default","uid":"uid-%s","resourceVersion":%q},"data":{"a":"b"}}`, name, name, version)
}

// link is an upstream of the test's own making.
type link struct {
	reach   Reach
	silence time.Duration
	// answer, if not empty, is what every request is answered.
	answer string
	asked  []string
	passed int
	// header, if set, is told of each request's.
	header func(http.Header)
	// written is called when a write has reached upstream.
	written func()
}

func (l *link) Reach() (Reach, time.Duration) { return l.reach, l.silence }

func (l *link) Try(w http.ResponseWriter, r *http.Request, _ time.Duration) error {
	l.asked = append(l.asked, r.Method+" "+r.URL.Path)
	if l.header != nil {
		l.header(r.Header)
	}
	if l.answer == "" {
		return errors.New("no answer")
	}
	_, _ = fmt.Fprint(w, l.answer)
	return nil
}

func (l *link) Pass(w http.ResponseWriter, r *http.Request) {
	l.passed++
	if l.header != nil {
		l.header(r.Header)
	}
	if l.header != nil && l.answer != "" {
		_, _ = fmt.Fprint(w, l.answer)
		return
	}
	if l.written != nil {
		l.written()
	}
	_, _ = fmt.Fprint(w, "upstream")
}

type everybody struct{ Access }

func (everybody) Check(context.Context, Caller, *request.RequestInfo) error { return nil }

// rig is a handler behind a server. What it does not answer is answered "upstream".
type rig struct {
	*Handler
	store  *store
	link   *link
	server *httptest.Server
	missed []string
}

func newRig(t *testing.T, reach Reach, known ...snapshot.Scope) *rig {
	t.Helper()
	r := &rig{store: newStore(known...), link: &link{reach: reach}}
	handler := &Handler{
		Log: testr.New(t), Node: func() string { return "edge-1" }, Objects: r.store, Upstream: r.link, Access: everybody{},
		Missed: func(resource schema.GroupResource, client string) {
			r.missed = append(r.missed, resource.String()+" by "+client)
		},
	}
	t.Cleanup(New(handler, clock.RealClock{}))
	r.Handler = handler
	requests := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		info, err := requests.NewRequestInfo(request)
		if err != nil {
			t.Error(err)
		}
		if !handler.Serve(w, request, info, Caller{
			Node: request.Header.Get("Authorization") == "", Process: func() bool { return request.Header.Get("Process") == "kubelet" },
		}) {
			r.link.passed++
			_, _ = fmt.Fprint(w, "upstream")
		}
	}))
	t.Cleanup(r.server.Close)
	return r
}
