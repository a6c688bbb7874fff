package localapi

import (
	"crypto/tls"
	"encoding/pem"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"
)

func TestIdentityRead(t *testing.T) {
	tests := map[string]struct {
		change    func(t *testing.T, k *kubelet, config *clientcmdapi.Config)
		wantError string
	}{
		"kubelet's kubeconfig names a pair": {
			change: func(*testing.T, *kubelet, *clientcmdapi.Config) {},
		},
		"the kubeconfig holds the pair": {
			change: func(t *testing.T, _ *kubelet, config *clientcmdapi.Config) {
				user := config.AuthInfos["u"]
				user.ClientCertificate, user.ClientKey = "", ""
				user.ClientCertificateData, user.ClientKeyData = clientCertificate(t, "system:node:edge-1")
			},
		},
		"there is no kubeconfig": {
			change: func(_ *testing.T, _ *kubelet, config *clientcmdapi.Config) {
				*config = clientcmdapi.Config{}
			},
			wantError: "has the node joined",
		},
		"the user has a token only": {
			change: func(_ *testing.T, _ *kubelet, config *clientcmdapi.Config) {
				config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: "t"}
			},
			wantError: "no client certificate",
		},
		"the certificate is not of a node": {
			change: func(t *testing.T, k *kubelet, _ *clientcmdapi.Config) {
				k.rotate(t, "admin")
			},
			wantError: `of "admin", not of a node`,
		},
		"the API server is not spoken to over TLS": {
			change: func(_ *testing.T, _ *kubelet, config *clientcmdapi.Config) {
				config.Clusters["c"].Server = "http://10.0.0.1:8080"
			},
			wantError: "not an https address",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			k := newKubelet(t, "https://10.0.0.1:6443", nil)
			path := filepath.Join(k.dir, "kubelet.conf")
			config, err := clientcmd.LoadFromFile(path)
			if err != nil {
				t.Fatal(err)
			}
			tc.change(t, k, config)
			remove(t, path)
			if len(config.Clusters) > 0 {
				if err := clientcmd.WriteToFile(*config, path); err != nil {
					t.Fatal(err)
				}
			}
			identity, err := k.source().Read()
			if tc.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantError) {
					t.Errorf("error %v, want one with %q", err, tc.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("edge-1", identity.Node); diff != "" {
				t.Error(diff)
			}
			if identity.Server.Host != "10.0.0.1:6443" {
				t.Error(identity.Server)
			}
		})
	}
}

func TestIdentityOutlivesBrokenFiles(t *testing.T) {
	k := newKubelet(t, "https://10.0.0.1:6443", nil)
	source := k.source()
	first, err := source.Read()
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := source.Read(); again != first {
		t.Error("files that have not changed were read into another identity")
	}
	writeTestFile(t, filepath.Join(k.dir, "client.pem"), []byte("half a cert"))
	kept, err := source.Read()
	if kept != first || err == nil {
		t.Errorf("got %v, %v; want the first identity and an error", kept, err)
	}
	k.rotate(t, "system:node:edge-1")
	second, err := source.Read()
	if err != nil {
		t.Fatal(err)
	}
	if second == first || !second.Is(k.certificate.Leaf) || second.Is(first.Certificate.Leaf) {
		t.Error("a rotated certificate was not taken up")
	}
}

func TestIdentityIsThePairThatEndsLast(t *testing.T) {
	k := newKubelet(t, "https://10.0.0.1:6443", nil)
	old := expired(t, k.certificate)
	key, err := keyutil.MarshalPrivateKeyToPEM(old.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	oldPair := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: old.Certificate[0]}), key...)
	writeTestFile(t, filepath.Join(k.dir, "client.pem"), oldPair)
	certificate, key := clientCertificate(t, "system:node:edge-1")
	writeTestFile(t, filepath.Join(k.dir, currentPair), append(certificate, key...))
	rotated, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	identity, err := k.source().Read()
	if err != nil {
		t.Fatal(err)
	}
	if !identity.Is(rotated.Leaf) {
		t.Error("the certificate that the kubeconfig names won over the one that kubelet rotated to")
	}
}
