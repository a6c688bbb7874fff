package mirror

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"rekindle.edge/agent/snapshot"
)

// script is an API server whose answers a test writes down. Requests are told by a word
// each: "list", "list VERSION-OF-CONTINUE", "watch FROM", "look".
type script struct {
	mu      sync.Mutex
	asked   []string
	answers map[string][]func(http.ResponseWriter, *http.Request)
}

func (s *script) on(request string, answers ...func(http.ResponseWriter, *http.Request)) {
	if s.answers == nil {
		s.answers = map[string][]func(http.ResponseWriter, *http.Request){}
	}
	s.answers[request] = append(s.answers[request], answers...)
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	request := "list"
	switch {
	case r.URL.Path == "/api/v1/nodes":
		text(`{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)(w, r)
		return
	case query.Has("watch"):
		request = "watch " + query.Get("resourceVersion")
	case query.Has("continue"):
		request = "list " + query.Get("continue")
	case !query.Has("limit"):
		request = "list all"
	}
	s.mu.Lock()
	s.asked = append(s.asked, request)
	answers := s.answers[request]
	if len(answers) == 0 {
		s.mu.Unlock()
		if strings.HasPrefix(request, "watch") {
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		http.Error(w, "the test has no answer to "+request, http.StatusTeapot)
		return
	}
	s.answers[request] = answers[1:]
	s.mu.Unlock()
	answers[0](w, r)
}

func (s *script) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.asked...)
}

func text(body string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
}

// status answers as the API server refuses.
func status(code int, reason string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":"no"}`, reason, code)
	}
}

// service is a Service with a field that no client of today knows.
func service(name, version string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"shop","uid":"u-%s","resourceVersion":%q,"managedFields":[{}]},"spec":{"future":{"x":[1]}}}`, name, name, version)
}

func list(version, next string, items ...string) func(http.ResponseWriter, *http.Request) {
	return text(fmt.Sprintf(`{"kind":"ServiceList","apiVersion":"v1","metadata":{"resourceVersion":%q,"continue":%q},"items":[%s]}`, version, next, strings.Join(items, ",")))
}

// events sends events and ends the watch, or leaves it open.
func events(open bool, all ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		for _, event := range all {
			_, _ = fmt.Fprintln(w, event)
		}
		w.(http.Flusher).Flush()
		if open {
			<-r.Context().Done()
		}
	}
}

func event(kind, object string) string { return fmt.Sprintf(`{"type":%q,"object":%s}`, kind, object) }

func bookmark(version string) string {
	return event("BOOKMARK", fmt.Sprintf(`{"kind":"Service","apiVersion":"v1","metadata":{"resourceVersion":%q}}`, version))
}

// follow runs a follower of services against a script until the names in the snapshot are
// as wanted and the last request is as wanted.
func follow(t *testing.T, s *script, want []string, last string, options ...func(*follower)) *snapshot.Objects {
	t.Helper()
	server := httptest.NewServer(s)
	store, err := snapshot.Open(t.TempDir(), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	m := New(store.Objects(), time.Now, func() {})
	c, err := newClient(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	session := &session{m: m, log: logr.Discard(), node: "edge-1", client: c, looker: c}
	session.verify = newVerifier(session.look, session.looked, nil)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { session.verify.run(ctx) })
	f := session.newFollower(target{scope: snapshot.Scope{Resource: services}}, nil)
	for _, option := range options {
		option(f)
	}
	running.Go(func() { session.follow(ctx, f) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		server.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	var got []string
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		got = nil
		all, _ := store.Objects().List(services)
		for _, object := range all {
			got = append(got, object.Name+"@"+object.ResourceVersion)
		}
		asked := s.requests()
		if cmp.Equal(want, got) && len(asked) > 0 && asked[len(asked)-1] == last {
			return store.Objects()
		}
	}
	t.Fatalf("snapshot (-want +got):\n%s\nrequests %q, the last is to be %q", cmp.Diff(want, got), s.requests(), last)
	return nil
}

func TestFollower(t *testing.T) {
	cases := map[string]struct {
		script func(*script)
		want   []string
		last   string
	}{
		"lists, and watches from there": {
			script: func(s *script) { s.on("list", list("5", "", service("a", "3"), service("b", "4"))) },
			want:   []string{"a@3", "b@4"}, last: "watch 5",
		},
		"follows changes and bookmarks": {
			script: func(s *script) {
				s.on("list", list("5", "", service("a", "3"), service("b", "4")))
				s.on("watch 5", events(true, event("MODIFIED", service("a", "6")), event("DELETED", service("b", "7")), event("ADDED", service("c", "8")), bookmark("9")))
			},
			want: []string{"a@6", "c@8"}, last: "watch 5",
		},
		"reads page by page": {
			script: func(s *script) {
				s.on("list", list("5", "two", service("a", "3")))
				s.on("list two", list("5", "", service("b", "4")))
			},
			want: []string{"a@3", "b@4"}, last: "watch 5",
		},
		"reads all at once when the rest of the pages has expired": {
			script: func(s *script) {
				s.on("list", list("5", "two", service("gone", "3")))
				s.on("list two", status(http.StatusGone, "Expired"))
				s.on("list all", list("8", "", service("a", "7")))
			},
			want: []string{"a@7"}, last: "watch 8",
		},
		"lists again when its version is too old": {
			script: func(s *script) {
				s.on("list", list("5", "", service("a", "3")), list("9", "", service("b", "8")))
				s.on("watch 5", status(http.StatusGone, "Expired"))
			},
			want: []string{"b@8"}, last: "watch 9",
		},
		"lists again when the server is behind": {
			script: func(s *script) {
				s.on("list", list("5", "", service("a", "3")), list("4", "", service("a", "3")))
				s.on("watch 5", status(http.StatusGatewayTimeout, "Timeout"))
			},
			want: []string{"a@3"}, last: "watch 4",
		},
		"goes on with its watch when too many are asking": {
			script: func(s *script) {
				s.on("list", list("5", "", service("a", "3")))
				s.on("watch 5", status(http.StatusTooManyRequests, "TooManyRequests"), events(true, event("MODIFIED", service("a", "6"))))
			},
			want: []string{"a@6"}, last: "watch 5",
		},
		"lists again when a watch says so": {
			script: func(s *script) {
				s.on("list", list("5", "", service("a", "3")), list("9", "", service("b", "8")))
				s.on("watch 5", events(false, event("ERROR", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`)))
			},
			want: []string{"b@8"}, last: "watch 9",
		},
		"lists again after a watch that ended early: another server may have the address": {
			script: func(s *script) {
				s.on("list", list("5", "", service("a", "3")), list("6", "", service("a", "3")))
				s.on("watch 5", events(false))
			},
			want: []string{"a@3"}, last: "watch 6",
		},
		"tries again when it is refused, or too many are asking": {
			script: func(s *script) {
				s.on("list", status(http.StatusForbidden, "Forbidden"), status(http.StatusInternalServerError, "InternalError"), list("5", "", service("a", "3")))
			},
			want: []string{"a@3"}, last: "watch 5",
		},
		"an answer that is no list changes nothing": {
			script: func(s *script) {
				s.on("list", text(`{"kind":"Pod"}`), text(`<html>`), text(`{"kind":"ServiceList"}`), func(w http.ResponseWriter, _ *http.Request) { http.NotFound(w, nil) },
					list("5", "", service("a", "3")))
			},
			want: []string{"a@3"}, last: "watch 5",
		},
		"an event of an unknown type, or without a name, is not taken": {
			script: func(s *script) {
				s.on("list", list("5", "", service("a", "3")), list("6", "", service("a", "3")), list("7", "", service("a", "3")))
				s.on("watch 5", events(true, event("SURPRISE", service("b", "6"))))
				s.on("watch 6", events(true, event("ADDED", `{"kind":"Service"}`)))
			},
			want: []string{"a@3"}, last: "watch 7",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &script{}
			tc.script(s)
			follow(t, s, tc.want, tc.last)
		})
	}
	t.Run("keeps fields of newer servers, and says what an item is", func(t *testing.T) {
		t.Parallel()
		s := &script{}
		s.on("list", list("5", "", service("a", "3")))
		s.on("watch 5", events(true, event("ADDED", `{"kind":"Service","apiVersion":"v1",`+service("b", "6")[1:])))
		objects := follow(t, s, []string{"a@3", "b@6"}, "watch 5")
		for _, name := range []string{"a", "b"} {
			object, _ := objects.Get(services, "shop", name)
			var got map[string]any
			if err := json.Unmarshal(object.Raw, &got); err != nil {
				t.Fatal(err)
			}
			want := map[string]any{
				"kind": "Service", "apiVersion": "v1", "spec": map[string]any{"future": map[string]any{"x": []any{1.0}}},
				"metadata": map[string]any{"name": name, "namespace": "shop", "uid": "u-" + name, "resourceVersion": object.ResourceVersion},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("object (-want +got):\n%s", diff)
			}
		}
	})
}

func TestAbsent(t *testing.T) {
	scope := snapshot.Scope{Resource: claims, Namespace: "shop", Name: "data"}
	notFound := func(name string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprintf(w, `{"kind":"Status","status":"Failure","reason":"NotFound","code":404,"details":{"name":%q}}`, name)
		}
	}
	cases := map[string]struct {
		answer  func(http.ResponseWriter, *http.Request)
		found   bool
		wantErr bool
	}{
		"an object":                                {answer: text(`{"kind":"PersistentVolumeClaim","metadata":{"name":"data","namespace":"shop"}}`), found: true},
		"the API server says that there is none":   {answer: notFound("data")},
		"it speaks of another object":              {answer: notFound("other"), wantErr: true},
		"it does not know the resource":            {answer: status(http.StatusNotFound, "NotFound"), wantErr: true},
		"a proxy's 404 says nothing":               {answer: func(w http.ResponseWriter, _ *http.Request) { http.NotFound(w, nil) }, wantErr: true},
		"a refusal says nothing":                   {answer: status(http.StatusForbidden, "Forbidden"), wantErr: true},
		"an answer that is no object says nothing": {answer: text(`{}`), wantErr: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(tc.answer))
			defer server.Close()
			c, err := newClient(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			found, _, err := c.get(t.Context(), scope)
			if found != tc.found || (err != nil) != tc.wantErr {
				t.Errorf("found %t, %v", found, err)
			}
		})
	}
}
