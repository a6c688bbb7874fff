package localapi

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
)

// currentPair is where kubelet keeps certificate and key after a rotation.
const currentPair = "kubelet-client-current.pem"

// nodeUserPrefix begins the user name of every kubelet.
const nodeUserPrefix = "system:node:"

// Identity is what the node is known by upstream, and where upstream is.
type Identity struct {
	// Node is the node's name.
	Node string
	// Server is the API server's address.
	Server *url.URL
	// Certificate is the node's client certificate.
	Certificate tls.Certificate
	// Authority is the CA by which the node knows the API server, of several the one that
	// ends last; nil: the machine's own.
	Authority *x509.Certificate
	// trust verifies the API server and holds no client certificate.
	trust *tls.Config
	proxy func(*http.Request) (*url.URL, error)
}

// Is tells whether a client certificate belongs to this node: it holds the node's public
// key. Its dates do not matter. A nil identity owns none.
func (i *Identity) Is(certificate *x509.Certificate) bool {
	return i != nil && bytes.Equal(certificate.RawSubjectPublicKeyInfo, i.Certificate.Leaf.RawSubjectPublicKeyInfo)
}

// IdentitySource reads the identity from kubelet's files, and again when they change.
type IdentitySource struct {
	// Kubeconfigs are kubelet's kubeconfig files to try; the first that exists is taken.
	Kubeconfigs []string
	// CertDir is kubelet's certificate directory.
	CertDir string

	mu      sync.Mutex
	stamp   string
	current *Identity
	err     error
}

// Read is the identity as the files have it now. If they cannot be read, it is the one that
// was read last, with the error; nil when there has been none.
func (s *IdentitySource) Read() (*Identity, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	config, stamp, err := s.config()
	if err != nil {
		s.stamp = ""
		return s.current, err
	}
	if stamp == s.stamp {
		return s.current, s.err
	}
	identity, err := load(config, s.CertDir)
	if err != nil {
		err = fmt.Errorf("kubelet's kubeconfig: %w", err)
	} else {
		s.current = identity
	}
	s.stamp, s.err = stamp, err
	return s.current, err
}

// config reads the kubeconfig. The stamp changes whenever one of the files that the
// identity is made of does.
func (s *IdentitySource) config() (*rest.Config, string, error) {
	path, err := firstOf(s.Kubeconfigs)
	if err != nil {
		return nil, "", err
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, "", fmt.Errorf("kubelet's kubeconfig %s: %w", path, err)
	}
	var stamp strings.Builder
	for _, file := range []string{path, config.CertFile, config.KeyFile, config.CAFile, filepath.Join(s.CertDir, currentPair)} {
		if info, err := os.Stat(file); err == nil {
			fmt.Fprintln(&stamp, file, info.ModTime().UnixNano(), info.Size())
		}
	}
	return config, stamp.String(), nil
}

func firstOf(paths []string) (string, error) {
	var errs []error
	for _, path := range paths {
		_, err := os.Stat(path)
		if err == nil {
			return path, nil
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("no kubeconfig of kubelet: %w; has the node joined its cluster?", errors.Join(errs...))
}

func load(config *rest.Config, certDir string) (*Identity, error) {
	server, err := url.Parse(config.Host)
	if err != nil || server.Host == "" || server.Scheme != "https" {
		return nil, fmt.Errorf("server %q is not an https address", config.Host)
	}
	certificate, err := newestPair(config, certDir)
	if err != nil {
		return nil, err
	}
	user := certificate.Leaf.Subject.CommonName
	node, ok := strings.CutPrefix(user, nodeUserPrefix)
	if !ok || node == "" {
		return nil, fmt.Errorf("the client certificate is of %q, not of a node (%sNAME)", user, nodeUserPrefix)
	}
	trust, err := rest.TLSConfigFor(rest.AnonymousClientConfig(config))
	if err != nil {
		return nil, fmt.Errorf("trust in the API server: %w", err)
	}
	if trust == nil {
		trust = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	proxy := config.Proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	return &Identity{Node: node, Server: server, Certificate: certificate, Authority: authority(config), trust: trust, proxy: proxy}, nil
}

// authority is the CA of the kubeconfig that ends last; nil: it names none.
func authority(config *rest.Config) *x509.Certificate {
	data := config.CAData
	if len(data) == 0 && config.CAFile != "" {
		data, _ = os.ReadFile(config.CAFile) // unreadable: the trust could not be made either
	}
	certificates, _ := cert.ParseCertsPEM(data) // none, or none that can be read: the same
	var last *x509.Certificate
	for _, c := range certificates {
		if last == nil || c.NotAfter.After(last.NotAfter) {
			last = c
		}
	}
	return last
}

// newestPair is the client certificate that ends last: the one that the kubeconfig names
// or holds, or the one that kubelet rotated to.
func newestPair(config *rest.Config, certDir string) (tls.Certificate, error) {
	current := filepath.Join(certDir, currentPair)
	candidates := []func() (tls.Certificate, error){
		func() (tls.Certificate, error) {
			if len(config.CertData) > 0 {
				return tls.X509KeyPair(config.CertData, config.KeyData)
			}
			if config.CertFile == "" {
				return tls.Certificate{}, errors.New("its user has no client certificate; kubelets that log in with a token or a plugin are not supported")
			}
			return tls.LoadX509KeyPair(config.CertFile, config.KeyFile)
		},
		func() (tls.Certificate, error) { return tls.LoadX509KeyPair(current, current) },
	}
	var newest tls.Certificate
	var errs []error
	for _, candidate := range candidates {
		pair, err := candidate()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if newest.Leaf == nil || pair.Leaf.NotAfter.After(newest.Leaf.NotAfter) {
			newest = pair
		}
	}
	if newest.Leaf == nil {
		return newest, errors.Join(errs...)
	}
	return newest, nil
}
