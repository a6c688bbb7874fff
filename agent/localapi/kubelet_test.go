package localapi

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"net/netip"
	"path/filepath"
	"testing"

	"k8s.io/apiserver/pkg/endpoints/request"

	"rekindle.edge/agent/localapi/answer"
)

// expire gives the node's certificate an end in the past.
func (k *kubelet) expire(t *testing.T) {
	t.Helper()
	old := expired(t, k.certificate)
	key, err := x509.MarshalPKCS8PrivateKey(old.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	writeTestFile(t, filepath.Join(k.dir, "client.pem"), append(
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: old.Certificate[0]}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...))
}

func TestKubeletWhoseCertificateHasExpired(t *testing.T) {
	cases := map[string]struct {
		valid  bool // the node's certificate
		owner  bool // the connection is kubelet's
		err    error
		header string
		want   int
	}{
		"is known by its process":                      {owner: true, want: 200},
		"another process is nobody":                    {want: 401},
		"nor is one that cannot be told":               {owner: true, err: errors.New("no answer"), want: 401},
		"with a valid certificate it has to show it":   {valid: true, owner: true, want: 401},
		"other credentials are taken as what they are": {owner: true, header: "Basic YTpi", want: 401},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			upstream, ca := apiServer(t, echo)
			k := newKubelet(t, upstream.URL, ca)
			if !tc.valid {
				k.expire(t)
			}
			var asked []netip.AddrPort
			l := startLocal(t, k.source(), func(s *Server) {
				s.Kubelet = func(_ context.Context, local, remote netip.AddrPort) (bool, error) {
					asked = append(asked, remote)
					return tc.owner && tc.err == nil, tc.err
				}
			})
			client := l.client(nil)
			for range 2 {
				request, err := http.NewRequest(http.MethodGet, l.url+pods, nil)
				if err != nil {
					t.Fatal(err)
				}
				if tc.header != "" {
					request.Header.Set("Authorization", tc.header)
				}
				if response, body := do(t, client, request); response.StatusCode != tc.want {
					t.Fatalf("%d %s, want %d", response.StatusCode, body, tc.want)
				}
			}
			if tc.want == 200 && (len(asked) != 1 || "https://"+asked[0].String() != l.url) {
				t.Errorf("asked for connections to %v, want once to %s", asked, l.url)
			}
		})
	}
}

// asking tells of each caller whether it is kubelet's process.
type asking chan bool

func (a asking) Serve(w http.ResponseWriter, _ *http.Request, _ *request.RequestInfo, caller answer.Caller) bool {
	a <- caller.Process != nil && caller.Process()
	w.WriteHeader(http.StatusOK)
	return true
}

func TestKubeletIsKnownByItsProcess(t *testing.T) {
	cases := map[string]struct {
		owner bool
		err   error
		token string
		want  bool
	}{
		"kubelet under any name":          {owner: true, want: true},
		"another program with its key":    {},
		"one that cannot be told":         {owner: true, err: errors.New("no answer")},
		"a token is nobody's of the node": {owner: true, token: "Bearer x"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			upstream, ca := apiServer(t, echo)
			k := newKubelet(t, upstream.URL, ca)
			calls := 0
			l := startLocal(t, k.source(), func(s *Server) {
				s.Kubelet = func(context.Context, netip.AddrPort, netip.AddrPort) (bool, error) {
					calls++
					return tc.owner && tc.err == nil, tc.err
				}
			})
			told := make(asking, 2)
			l.Answer(told)
			certificate := &k.certificate
			if tc.token != "" {
				certificate = nil
			}
			client := l.client(certificate)
			for range 2 {
				r, err := http.NewRequest(http.MethodGet, l.url+pods, nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Authorization", tc.token)
				do(t, client, r)
				if got := <-told; got != tc.want {
					t.Errorf("kubelet's: %v, want %v", got, tc.want)
				}
			}
			if tc.want && calls != 1 {
				t.Errorf("the service manager was asked %d times, want once a connection", calls)
			}
		})
	}
}
