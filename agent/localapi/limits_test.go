package localapi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"

	"rekindle.edge/agent/localapi/answer"
)

// parrot answers everything but what it is told to leave.
type parrot struct{ flood bool }

func (p parrot) Serve(w http.ResponseWriter, r *http.Request, info *request.RequestInfo, c answer.Caller) bool {
	if !p.flood || info.Verb != "watch" {
		_, _ = fmt.Fprintf(w, "the node's own, to node %v", c.Node)
		return true
	}
	control := http.NewResponseController(w)
	for chunk := bytes.Repeat([]byte("x"), 64<<10); ; {
		if _, err := w.Write(chunk); err != nil || control.Flush() != nil {
			return true
		}
	}
}

func TestWhomACallerSpeaksForIsTheAPIServersToSay(t *testing.T) {
	upstream, ca := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "upstream, as %q", r.Header.Get("Impersonate-User"))
	})
	k := newKubelet(t, upstream.URL, ca)
	l := startLocal(t, k.source())
	l.Answer(parrot{})
	cases := map[string]struct {
		node      bool
		header    http.Header
		want      string
		cutOff    string
		wantCodes [2]int
	}{
		"the node as itself":              {node: true, want: "the node's own, to node true", cutOff: "the node's own, to node true", wantCodes: [2]int{200, 200}},
		"the node as somebody":            {node: true, header: http.Header{"Impersonate-User": {"admin"}}, want: `upstream, as "admin"`, wantCodes: [2]int{200, 503}},
		"the node as a group":             {node: true, header: http.Header{"Impersonate-Group": {"system:masters"}}, want: `upstream, as ""`, wantCodes: [2]int{200, 503}},
		"a token as somebody":             {header: http.Header{"Authorization": {"Bearer x"}, "Impersonate-User": {"admin"}}, want: `upstream, as "admin"`, wantCodes: [2]int{200, 503}},
		"a token with extra":              {header: http.Header{"Authorization": {"Bearer x"}, "Impersonate-Extra-Scopes": {"all"}}, want: `upstream, as ""`, wantCodes: [2]int{200, 503}},
		"a front proxy's word is none":    {header: http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}}, wantCodes: [2]int{401, 401}},
		"nor beside a token":              {header: http.Header{"Authorization": {"Bearer x"}, "X-Remote-User": {"system:node:edge-1"}}, want: "the node's own, to node false", cutOff: "the node's own, to node false", wantCodes: [2]int{200, 200}},
		"a token of two words is a token": {header: http.Header{"Authorization": {"Bearer  x"}}, want: "the node's own, to node false", cutOff: "the node's own, to node false", wantCodes: [2]int{200, 200}},
	}
	for i, link := range []string{"connected", "cut off"} {
		if link == "cut off" {
			upstream.Close()
			eventually(t, "the link is lost", func() bool { state, _ := l.link.State(); return state == CutOff })
		}
		for name, tc := range cases {
			t.Run(name+" while "+link, func(t *testing.T) {
				r, err := http.NewRequest(http.MethodGet, l.url+pods, nil)
				if err != nil {
					t.Fatal(err)
				}
				for name, values := range tc.header {
					r.Header[name] = values
				}
				client := l.client(nil)
				if tc.node {
					client = l.client(&k.certificate)
				}
				response, body := do(t, client, r)
				if response.StatusCode != tc.wantCodes[i] {
					t.Fatalf("%d %s, want %d", response.StatusCode, body, tc.wantCodes[i])
				}
				want := tc.want
				if i == 1 {
					want = tc.cutOff
				}
				if response.StatusCode == 200 && body != want {
					t.Errorf("%s, want %s", body, want)
				}
				if response.StatusCode != 200 {
					wantStatus(t, response, body)
				}
			})
		}
	}
}

// stranger makes a request with a token.
func (l *local) stranger(ctx context.Context, t *testing.T, method, path string, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, l.url+path, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer x")
	return r
}

func TestStrangersDoNotTakeKubeletsPlace(t *testing.T) {
	release := make(chan struct{})
	upstream, ca := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			w.WriteHeader(200)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
	})
	k := newKubelet(t, upstream.URL, ca)
	l := startLocal(t, k.source(), func(s *Server) { s.strangers.short, s.strangers.long = make(places, 2), make(places, 3) })
	defer close(release)
	for kind, tc := range map[string]struct {
		path  string
		limit int
	}{
		"lists":   {path: pods, limit: 2},
		"watches": {path: pods + "&watch=1", limit: 3},
	} {
		t.Run(kind, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for i := range tc.limit {
				response, err := l.client(nil).Do(l.stranger(ctx, t, http.MethodGet, tc.path, nil))
				if err != nil {
					t.Fatalf("request %d: %v", i, err)
				}
				defer response.Body.Close()
			}
			response, body := do(t, l.client(nil), l.stranger(ctx, t, http.MethodGet, tc.path, nil))
			if response.StatusCode != http.StatusTooManyRequests {
				t.Errorf("one more: %d %s", response.StatusCode, body)
			}
			wantStatus(t, response, body)
			if response, body := get(t, l.client(&k.certificate), l.url+tc.path); response.StatusCode != 200 {
				t.Errorf("the node: %d %s", response.StatusCode, body)
			}
			cancel()
			eventually(t, "places are free again", func() bool { return len(l.strangers.short)+len(l.strangers.long) == 0 })
		})
	}
}

func TestSlowCallersAreEnded(t *testing.T) {
	upstream, ca := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil && r.URL.Query().Get("answer") == "never" {
			<-r.Context().Done()
		}
	})
	k := newKubelet(t, upstream.URL, ca)
	l := startLocal(t, k.source(), func(s *Server) {
		s.strangers.shortTime, s.strangers.stuckTime = 300*time.Millisecond, 300*time.Millisecond
	})
	free := func(t *testing.T) {
		t.Helper()
		eventually(t, "places are free again", func() bool { return len(l.strangers.short)+len(l.strangers.long) == 0 })
	}
	for name, size := range map[string]int64{"a small body that never comes whole": 100, "a large one": 10 << 20} {
		t.Run(name, func(t *testing.T) {
			body, writer := io.Pipe()
			defer writer.Close()
			go func() { _, _ = writer.Write([]byte("x")) }()
			r := l.stranger(t.Context(), t, http.MethodPost, "/api/v1/namespaces/default/configmaps", body)
			r.ContentLength = size
			response, answer := do(t, l.client(nil), r)
			if response.StatusCode < 400 {
				t.Errorf("answered with %d", response.StatusCode)
			}
			wantStatus(t, response, answer)
			free(t)
		})
	}
	t.Run("an API server that does not answer", func(t *testing.T) {
		response, body := do(t, l.client(nil), l.stranger(t.Context(), t, http.MethodGet, "/api/v1/services?answer=never", nil))
		if response.StatusCode != http.StatusGatewayTimeout {
			t.Errorf("answered with %d %s", response.StatusCode, body)
		}
		wantStatus(t, response, body)
		free(t)
	})
	l.Answer(parrot{flood: true})
	for name, http2 := range map[string]bool{"a watch that nobody reads": true, "one over HTTP/1": false} {
		t.Run(name, func(t *testing.T) {
			client := l.client(nil)
			client.Transport.(*http.Transport).ForceAttemptHTTP2 = http2
			response, err := client.Do(l.stranger(t.Context(), t, http.MethodGet, pods+"&watch=1", nil))
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			free(t)
		})
	}
}

func TestAWatchMayBeSilent(t *testing.T) {
	const stuck = 100 * time.Millisecond
	upstream, ca := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		for range 3 {
			_, _ = fmt.Fprintln(w, "event")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(4 * stuck)
		}
	})
	k := newKubelet(t, upstream.URL, ca)
	l := startLocal(t, k.source(), func(s *Server) { s.strangers.shortTime, s.strangers.stuckTime = stuck, stuck })
	for name, http2 := range map[string]bool{"over HTTP/2": true, "over HTTP/1": false} {
		t.Run(name, func(t *testing.T) {
			client := l.client(nil)
			client.Transport.(*http.Transport).ForceAttemptHTTP2 = http2
			response, body := do(t, client, l.stranger(t.Context(), t, http.MethodGet, pods+"&watch=1", nil))
			if response.StatusCode != 200 || strings.Count(body, "event") != 3 {
				t.Errorf("%d %q", response.StatusCode, body)
			}
		})
	}
}

func TestConnectionsOfPodsAreBounded(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if limitListener(listener) != listener {
		t.Error("kubelet's connections are bounded")
	}
	limited := &limitedListener{listener, make(places, 2)}
	accepted := make(chan net.Conn, 4)
	go func() {
		for {
			conn, err := limited.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	dial()
	dial()
	first := <-accepted
	<-accepted
	_ = dial().SetReadDeadline(time.Now().Add(10 * time.Second))
	third := dial()
	_ = third.SetReadDeadline(time.Now().Add(10 * time.Second))
	if n, err := third.Read(make([]byte, 1)); err == nil || n != 0 || strings.Contains(err.Error(), "timeout") {
		t.Errorf("one too many was not closed: %d %v", n, err)
	}
	_ = first.Close()
	_ = first.Close()
	dial()
	select {
	case <-accepted:
	case <-time.After(10 * time.Second):
		t.Error("a place that is free again is not given")
	}
	if len(limited.open) != 2 {
		t.Errorf("%d places are taken, want 2", len(limited.open))
	}
}
