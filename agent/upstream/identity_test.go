package upstream

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// credentials of a user in one file, key first, as kubelet keeps them.
func credentials(t *testing.T, user string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: user}, NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: plain}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})...)
}

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://192.0.2.1:6443"}}]
users: [{name: u, user: %s}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	user := func(path string) string { return fmt.Sprintf("{client-certificate: %s, client-key: %s}", path, path) }
	node := user(file("node.pem", credentials(t, "system:node:edge-1")))
	cases := map[string]struct {
		kubeconfig string
		name       string
		want       string
		wantErr    []string
	}{
		"the name in the certificate":     {kubeconfig: fmt.Sprintf(kubeconfig, node), want: "edge-1"},
		"the configured name is the same": {kubeconfig: fmt.Sprintf(kubeconfig, node), name: "edge-1", want: "edge-1"},
		"the configured name is another":  {kubeconfig: fmt.Sprintf(kubeconfig, node), name: "edge-2", wantErr: []string{`"edge-1"`, `"edge-2"`, "nodeName", "leave"}},
		"a token has no name":             {kubeconfig: fmt.Sprintf(kubeconfig, "{token: t}"), wantErr: []string{"kubeconfig", "nodeName"}},
		"a token with a configured name":  {kubeconfig: fmt.Sprintf(kubeconfig, "{token: t}"), name: "edge-2", want: "edge-2"},
		"a certificate of somebody else":  {kubeconfig: fmt.Sprintf(kubeconfig, user(file("admin.pem", credentials(t, "admin")))), wantErr: []string{`"admin"`, "system:node:NAME", "name kubelet's own file as kubeconfig"}},
		"a certificate without its block": {kubeconfig: fmt.Sprintf(kubeconfig, user(file("empty.pem", []byte("x\n")))), wantErr: []string{"CERTIFICATE"}},
		"a certificate that is missing":   {kubeconfig: fmt.Sprintf(kubeconfig, user(filepath.Join(dir, "none.pem"))), wantErr: []string{"none.pem"}},
		"a file that is no kubeconfig":    {kubeconfig: "{", wantErr: []string{"must be kubelet's own"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, got, err := load(file("kubeconfig", []byte(tc.kubeconfig)), tc.name)
			if (err != nil) != (tc.wantErr != nil) || got != tc.want {
				t.Fatalf("got %q, %v, want %q, error %v", got, err, tc.want, tc.wantErr)
			}
			for _, part := range tc.wantErr {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not name %s", err, part)
				}
			}
		})
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	second := filepath.Join(dir, "second")
	if err := os.WriteFile(second, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := find([]string{filepath.Join(dir, "first"), second}); got != second || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, second)
	}
	if _, err := find([]string{filepath.Join(dir, "first")}); err == nil || !strings.Contains(err.Error(), "first") || !strings.Contains(err.Error(), "kubeconfig") {
		t.Errorf("error %v does not name the file and the field", err)
	}
}
