package localapi

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// clientCertificate is a self-signed one that ended at end; nobody checks who signed it.
func clientCertificate(t *testing.T, commonName string) (certificate, key []byte) {
	t.Helper()
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: commonName},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	certificate, key, err := issue(template, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

func pair(t *testing.T, commonName string) tls.Certificate {
	t.Helper()
	certificate, err := tls.X509KeyPair(clientCertificate(t, commonName))
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// expired is a certificate for the same key that ended long ago.
func expired(t *testing.T, of tls.Certificate) tls.Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: of.Leaf.SerialNumber,
		Subject:      of.Leaf.Subject,
		NotBefore:    time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:     time.Date(2021, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(nil, template, template, of.Leaf.PublicKey, of.PrivateKey.(crypto.Signer))
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: of.PrivateKey}
}

// kubelet is the set of files that a kubelet keeps.
type kubelet struct {
	dir         string
	certificate tls.Certificate
}

func (k *kubelet) source() *IdentitySource {
	return &IdentitySource{Kubeconfigs: []string{filepath.Join(k.dir, "kubelet.conf")}, CertDir: k.dir}
}

// rotate gives the node a new certificate in its file.
func (k *kubelet) rotate(t *testing.T, commonName string) {
	t.Helper()
	certificate, key := clientCertificate(t, commonName)
	writeTestFile(t, filepath.Join(k.dir, "client.pem"), append(certificate, key...))
	var err error
	if k.certificate, err = tls.X509KeyPair(certificate, key); err != nil {
		t.Fatal(err)
	}
}

func writeTestFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// newKubelet is kubelet of node edge-1, whose API server has the address and, if given,
// the certificate.
func newKubelet(t *testing.T, server string, ca []byte) *kubelet {
	t.Helper()
	k := &kubelet{dir: t.TempDir()}
	k.rotate(t, "system:node:edge-1")
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificate: "client.pem", ClientKey: "client.pem"}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	if err := clientcmd.WriteToFile(*config, filepath.Join(k.dir, "kubelet.conf")); err != nil {
		t.Fatal(err)
	}
	return k
}

// apiServer is an upstream of the test's own making that asks for client certificates.
func apiServer(t *testing.T, handler http.HandlerFunc) (*httptest.Server, []byte) {
	t.Helper()
	pki, err := LoadPKI([]string{t.TempDir()}, []string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			return
		}
		handler(w, r)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pki.Serving}, ClientAuth: tls.RequestClientCert}
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, pki.CA
}

// local is a local API that runs.
type local struct {
	*Server
	url string
	ca  []byte
}

func startLocal(t *testing.T, source *IdentitySource, options ...func(*Server)) *local {
	t.Helper()
	pki, err := LoadPKI([]string{t.TempDir()}, []string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := New(testLog(t), pki, source)
	for _, option := range options {
		option(server)
	}
	done := make(chan error, 1)
	ctx := t.Context() // ends before the test's cleanups
	go func() { done <- server.Run(ctx, []net.Listener{listener}) }()
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return &local{Server: server, url: "https://" + listener.Addr().String(), ca: pki.CA}
}

func testLog(t *testing.T) logr.Logger { return testr.NewWithOptions(t, testr.Options{Verbosity: 4}) }

// client trusts the local API and shows the certificate, if there is one.
func (l *local) client(certificate *tls.Certificate) *http.Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(l.ca)
	config := &tls.Config{RootCAs: roots}
	if certificate != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil }
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}}
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for range 1500 {
		if condition() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("not in 15 s: %s", what)
}
