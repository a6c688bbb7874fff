package localapi

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	pods     = "/api/v1/pods?fieldSelector=spec.nodeName%3Dedge-1"
	requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
)

// echo says who it was called by and with what.
func echo(w http.ResponseWriter, r *http.Request) {
	who := "nobody"
	if len(r.TLS.PeerCertificates) > 0 {
		who = r.TLS.PeerCertificates[0].Subject.CommonName
	}
	body, _ := io.ReadAll(r.Body)
	_, _ = fmt.Fprintf(w, "%s %s as %s with %q: %s", r.Method, r.RequestURI, who, r.Header.Get("Authorization"), body)
}

func TestWhoMayCall(t *testing.T) {
	upstream, ca := apiServer(t, echo)
	k := newKubelet(t, upstream.URL, ca)
	l := startLocal(t, k.source())
	old, other := expired(t, k.certificate), pair(t, "system:node:edge-2")
	tests := map[string]struct {
		certificate *tls.Certificate
		token       string
		wantCode    int
		want        string
	}{
		"the node goes upstream with its certificate": {
			certificate: &k.certificate,
			wantCode:    200,
			want:        "PUT " + pods + ` as system:node:edge-1 with "": hello`,
		},
		"the node's certificate is accepted past its end": {
			certificate: &old,
			wantCode:    200,
			want:        "PUT " + pods + ` as system:node:edge-1 with "": hello`,
		},
		"the node with a token is the node": {
			certificate: &k.certificate,
			token:       "Bearer abc",
			wantCode:    200,
			want:        "PUT " + pods + ` as system:node:edge-1 with "": hello`,
		},
		"a token goes upstream alone": {
			token:    "Bearer abc",
			wantCode: 200,
			want:     "PUT " + pods + ` as nobody with "Bearer abc": hello`,
		},
		"nobody is refused":              {wantCode: 401},
		"a password is refused":          {token: "Basic YTpi", wantCode: 401},
		"an empty token is refused":      {token: "Bearer ", wantCode: 401},
		"another node is refused":        {certificate: &other, wantCode: 403},
		"another node's token is no key": {certificate: &other, token: "Bearer abc", wantCode: 403},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			request, err := http.NewRequest(http.MethodPut, l.url+pods, strings.NewReader("hello"))
			if err != nil {
				t.Fatal(err)
			}
			if tc.token != "" {
				request.Header.Set("Authorization", tc.token)
			}
			response, body := do(t, l.client(tc.certificate), request)
			if response.StatusCode != tc.wantCode {
				t.Fatalf("%d %s, want %d", response.StatusCode, body, tc.wantCode)
			}
			if tc.wantCode == 200 {
				if diff := cmp.Diff(tc.want, body); diff != "" {
					t.Error(diff)
				}
				return
			}
			wantStatus(t, response, body)
		})
	}
}

func TestRotatedCertificateIsKnownAtOnce(t *testing.T) {
	upstream, ca := apiServer(t, echo)
	k := newKubelet(t, upstream.URL, ca)
	l := startLocal(t, k.source())
	get(t, l.client(&k.certificate), l.url+pods)
	k.rotate(t, "system:node:edge-1")
	if response, body := get(t, l.client(&k.certificate), l.url+pods); response.StatusCode != 200 {
		t.Fatalf("%d %s", response.StatusCode, body)
	}
}

func TestCutOff(t *testing.T) {
	upstream, ca := apiServer(t, echo)
	k := newKubelet(t, upstream.URL, ca)
	upstream.Close()
	l := startLocal(t, k.source())
	other := pair(t, "system:node:edge-2")
	eventually(t, "cut off", func() bool { state, _ := l.link.State(); return state == CutOff })
	tests := map[string]struct {
		certificate *tls.Certificate
		path        string
		wantCode    int
	}{
		"the node is told that upstream is out of reach":       {&k.certificate, pods, 503},
		"a certificate request is no word of a healthy server": {&k.certificate, requests, 503},
		"nor is it for another node":                           {&other, requests, 503},
		"nor for nobody":                                       {nil, requests, 503},
		"another node is refused":                              {&other, pods, 403},
		"nobody is refused":                                    {nil, pods, 401},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			response, body := get(t, l.client(tc.certificate), l.url+tc.path)
			if response.StatusCode != tc.wantCode {
				t.Errorf("%d %s, want %d", response.StatusCode, body, tc.wantCode)
			}
			wantStatus(t, response, body)
			if took := time.Since(start); took > time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

func TestCertificateRequestIsRefusedByAHealthyServerOnly(t *testing.T) {
	upstream, ca := apiServer(t, echo)
	k := newKubelet(t, upstream.URL, ca)
	l := startLocal(t, k.source())
	eventually(t, "connected", func() bool { state, _ := l.link.State(); return state == Connected })
	if response, body := get(t, l.client(nil), l.url+requests); response.StatusCode != 401 {
		t.Errorf("%d %s, want 401", response.StatusCode, body)
	}
}

func TestNodeThatHasNotJoined(t *testing.T) {
	l := startLocal(t, &IdentitySource{Kubeconfigs: []string{"/nonexistent"}, CertDir: t.TempDir()})
	request, err := http.NewRequest(http.MethodGet, l.url+pods, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer abc")
	response, body := do(t, l.client(nil), request)
	if response.StatusCode != 503 || !strings.Contains(body, "has the node joined") {
		t.Errorf("%d %s", response.StatusCode, body)
	}
}

func TestWaitEndsWhenTheLinkIsLostAndStreamsGoOn(t *testing.T) {
	next := make(chan string)
	var asked atomic.Int32
	upstream, ca := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1); r.URL.Query().Get("watch") == "" {
			<-r.Context().Done() // never answers
			return
		}
		for {
			w.(http.Flusher).Flush()
			select {
			case event := <-next:
				_, _ = fmt.Fprintln(w, event)
			case <-r.Context().Done():
				return
			}
		}
	})
	k := newKubelet(t, upstream.URL, ca)
	l := startLocal(t, k.source())
	client := l.client(&k.certificate)
	watch, err := client.Get(l.url + pods + "&watch=true")
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Body.Close()
	events := bufio.NewScanner(watch.Body)
	wantEvent := func(want string) {
		t.Helper()
		next <- want
		if !events.Scan() || events.Text() != want {
			t.Fatalf("event %q, %v; want %q", events.Text(), events.Err(), want)
		}
	}
	wantEvent("one")

	answer := make(chan string)
	go func() {
		response, body := get(t, client, l.url+pods)
		answer <- fmt.Sprint(response.StatusCode, body)
	}()
	eventually(t, "the second request is upstream", func() bool { return asked.Load() == 2 })
	l.link.mu.Lock()
	l.link.cut(fmt.Errorf("the cable was pulled"))
	l.link.mu.Unlock()
	if got := <-answer; !strings.HasPrefix(got, "503") || !strings.Contains(got, "the cable was pulled") {
		t.Error(got)
	}
	wantEvent("two")
	eventually(t, "connected again", func() bool { state, _ := l.link.State(); return state == Connected })
	wantEvent("three")
}

func TestUpgradePassesBothWays(t *testing.T) {
	upstream, ca := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "SPDY/3.1" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		conn, stream, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = fmt.Fprint(stream, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
		_ = stream.Flush()
		_, _ = io.Copy(conn, stream)
	})
	k := newKubelet(t, upstream.URL, ca)
	l := startLocal(t, k.source())
	client := l.client(&k.certificate)
	client.Transport.(*http.Transport).ForceAttemptHTTP2 = false
	request, err := http.NewRequest(http.MethodPost, l.url+"/api/v1/namespaces/a/pods/b/exec", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", "SPDY/3.1")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(response.Status)
	}
	stream := response.Body.(io.ReadWriter)
	for _, want := range []string{"ping", "pong"} {
		if _, err := io.WriteString(stream, want); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(stream, got); err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestAnswersPassUntouched(t *testing.T) {
	upstream, ca := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.Header().Set("Content-Encoding", r.Header.Get("Accept-Encoding"))
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = fmt.Fprintf(w, "%s?%s", r.URL.EscapedPath(), r.URL.RawQuery)
	})
	k := newKubelet(t, upstream.URL, ca)
	l := startLocal(t, k.source())
	client := l.client(&k.certificate)
	const target = "/apis/unknown.example/v9/a%2Fb?x=1;y=2&z=%zz"
	request, err := http.NewRequest(http.MethodGet, l.url+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept-Encoding", "zstd")
	response, body := do(t, client, request)
	got := []string{response.Status, response.Header.Get("Retry-After"), response.Header.Get("Content-Encoding"), body}
	if diff := cmp.Diff([]string{"429 Too Many Requests", "7", "zstd", target}, got); diff != "" {
		t.Error(diff)
	}
}

// wantStatus checks that an answer of the agent's own is a Status that client-go reads,
// and does not make it try again inside the call.
func wantStatus(t *testing.T, response *http.Response, body string) {
	t.Helper()
	var status metav1.Status
	if err := json.Unmarshal([]byte(body), &status); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	if int(status.Code) != response.StatusCode || status.Kind != "Status" || !strings.Contains(status.Message, "rekindle-agent") {
		t.Errorf("not a clear Status: %s", body)
	}
	if response.Header.Get("Retry-After") != "" {
		t.Error("Retry-After is set")
	}
}

func get(t *testing.T, client *http.Client, url string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return do(t, client, request)
}

func do(t *testing.T, client *http.Client, request *http.Request) (*http.Response, string) {
	t.Helper()
	response, err := client.Do(request)
	if err != nil {
		t.Error(err)
		return &http.Response{}, ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	return response, string(body)
}

func TestCheck(t *testing.T) {
	k := newKubelet(t, "https://192.0.2.1:6443", nil) // no way there
	l := startLocal(t, k.source())
	address := strings.TrimPrefix(l.url, "https://")
	if err := l.Check(t.Context(), address); err != nil {
		t.Errorf("it serves, with or without an API server: %v", err)
	}
	other := startLocal(t, k.source())
	if err := other.Check(t.Context(), address); err == nil {
		t.Error("a server with another certificate is not the agent's own")
	}
}
