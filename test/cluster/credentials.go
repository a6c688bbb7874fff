package cluster

import (
	"net"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// writeCredentials makes the CA and every file that the control plane reads.
func (c *Cluster) writeCredentials() error {
	dir := c.file("")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var err error
	if c.ca, err = newAuthority("rekindle-test"); err != nil {
		return err
	}
	if err := os.WriteFile(c.file("ca.crt"), c.ca.pem, 0o644); err != nil {
		return err
	}
	key, err := serviceAccountKey()
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.file("service-account.key"), key, 0o600); err != nil {
		return err
	}
	ips := []net.IP{net.IPv4(127, 0, 0, 1), c.address.Addr().AsSlice()}
	if c.network != nil {
		// The kubernetes Service has the first address of the range.
		ips = append(ips, c.network.ServiceCIDR().Addr().Next().AsSlice())
	}
	serving, err := c.ca.server("kube-apiserver", []string{
		"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
	}, ips)
	if err != nil {
		return err
	}
	if err := writePair(dir, "apiserver", serving); err != nil {
		return err
	}
	for name, subject := range map[string]struct {
		user   string
		groups []string
	}{
		"admin":                   {"admin", []string{"system:masters"}},
		"kubelet-client":          {"kube-apiserver-kubelet-client", []string{"system:masters"}},
		"kube-controller-manager": {"system:kube-controller-manager", nil},
		"kube-scheduler":          {"system:kube-scheduler", nil},
	} {
		pair, err := c.ca.client(subject.user, subject.groups...)
		if err != nil {
			return err
		}
		if err := writePair(dir, name, pair); err != nil {
			return err
		}
		kubeconfig, err := c.kubeconfig(pair)
		if err != nil {
			return err
		}
		if err := os.WriteFile(c.file(name+".kubeconfig"), kubeconfig, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// kubeconfig embeds a client certificate.
func (c *Cluster) kubeconfig(pair keyPair) ([]byte, error) {
	config := c.emptyKubeconfig()
	config.AuthInfos["default"] = &clientcmdapi.AuthInfo{ClientCertificateData: pair.cert, ClientKeyData: pair.key}
	return clientcmd.Write(*config)
}

// emptyKubeconfig names the cluster but no user's credentials.
func (c *Cluster) emptyKubeconfig() *clientcmdapi.Config {
	config := clientcmdapi.NewConfig()
	config.Clusters["default"] = &clientcmdapi.Cluster{Server: "https://" + c.address.String(), CertificateAuthorityData: c.ca.pem}
	config.Contexts["default"] = &clientcmdapi.Context{Cluster: "default", AuthInfo: "default"}
	config.CurrentContext = "default"
	return config
}

func (c *Cluster) restConfig(name string) *rest.Config {
	return &rest.Config{
		Host: "https://" + c.address.String(),
		TLSClientConfig: rest.TLSClientConfig{
			CAData: c.ca.pem, CertFile: c.file(name + ".crt"), KeyFile: c.file(name + ".key"),
		},
		// Tests create and watch in bursts; client-go's default of 5 a second is for sharing a server.
		QPS: 100, Burst: 200,
	}
}
