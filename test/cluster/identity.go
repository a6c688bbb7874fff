package cluster

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// NodeCredentials are what a node needs to be itself towards the API server, PEM or kubeconfig.
type NodeCredentials struct {
	// Kubeconfig refers to ClientPEM by the path it was made for.
	Kubeconfig []byte
	// ClientPEM holds the certificate and the key, as kubelet's kubelet-client-current.pem does.
	ClientPEM []byte
	// CA signs the API server's certificate and its client certificate.
	CA []byte
}

// Node gives the configuration of user system:node:NAME.
func (c *Cluster) Node(name string) (*rest.Config, error) {
	return c.User("system:node:"+name, "system:nodes")
}

// User gives the client configuration of any user.
func (c *Cluster) User(name string, groups ...string) (*rest.Config, error) {
	pair, err := c.ca.client(name, groups...)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host:            "https://" + c.address.String(),
		TLSClientConfig: rest.TLSClientConfig{CAData: c.ca.pem, CertData: pair.cert, KeyData: pair.key},
	}, nil
}

// NodeCredentials gives node NAME its files; pemPath is where ClientPEM will lie on the node.
func (c *Cluster) NodeCredentials(name, pemPath string) (*NodeCredentials, error) {
	pair, err := c.ca.client("system:node:"+name, "system:nodes")
	if err != nil {
		return nil, err
	}
	config := c.emptyKubeconfig()
	config.AuthInfos["default"] = &clientcmdapi.AuthInfo{ClientCertificate: pemPath, ClientKey: pemPath}
	kubeconfig, err := clientcmd.Write(*config)
	if err != nil {
		return nil, err
	}
	return &NodeCredentials{Kubeconfig: kubeconfig, ClientPEM: append(pair.cert, pair.key...), CA: c.ca.pem}, nil
}

// ShortLived is a ClientPEM of node NAME that ends within life.
func (c *Cluster) ShortLived(name string, life time.Duration) ([]byte, error) {
	pair, err := c.ca.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "system:node:" + name, Organization: []string{"system:nodes"}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		NotAfter:    time.Now().Add(life),
	})
	return append(pair.cert, pair.key...), err
}

// ProxyKubeconfig is kube-proxy's kubeconfig.
func (c *Cluster) ProxyKubeconfig() ([]byte, error) {
	pair, err := c.ca.client("system:kube-proxy")
	if err != nil {
		return nil, err
	}
	return c.kubeconfig(pair)
}
