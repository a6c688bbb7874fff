// Package localapi shows the local API of a node in front of a real API server.
package localapi

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"rekindle.edge/agent/localapi"
	"rekindle.edge/test/cluster"
)

const (
	nodeName = "edge-1"
	timeout  = 20 * time.Second
	pause    = 50 * time.Millisecond
)

var (
	upstream *cluster.Cluster
	admin    kubernetes.Interface
	// identity is the node's, as kubelet holds it
	identity *rest.Config
	// address and authority of the local API
	address   string
	authority []byte
)

func TestLocalAPI(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Local API")
}

var _ = BeforeSuite(func(ctx context.Context) {
	var err error
	upstream, err = cluster.Start(ctx, cluster.Options{})
	Expect(err).NotTo(HaveOccurred(), "run `make test`, which builds etcd and kube-apiserver")
	DeferCleanup(func() { Expect(upstream.Stop()).To(Succeed()) })
	admin = kubernetes.NewForConfigOrDie(upstream.Admin())
	_, err = admin.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())

	identity, err = upstream.Node(nodeName)
	Expect(err).NotTo(HaveOccurred())
	dir := GinkgoT().TempDir()
	pki, err := localapi.LoadPKI([]string{filepath.Join(dir, "pki")}, localapi.Hosts("169.254.77.43"))
	Expect(err).NotTo(HaveOccurred())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	address, authority = "https://"+listener.Addr().String(), pki.CA
	server := localapi.New(logr.Discard(), pki, &localapi.IdentitySource{
		Kubeconfigs: []string{writeKubeconfig(dir, identity)}, CertDir: dir,
	})
	serving, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(serving, []net.Listener{listener}) }()
	DeferCleanup(func() {
		stop()
		Eventually(done, timeout).Should(Receive(BeNil()))
	})
}, NodeTimeout(2*time.Minute))

// writeKubeconfig writes what kubelet would have on its disk.
func writeKubeconfig(dir string, config *rest.Config) string {
	Expect(rest.LoadTLSFiles(config)).To(Succeed())
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["c"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	kubeconfig.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	kubeconfig.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	kubeconfig.CurrentContext = "x"
	path := filepath.Join(dir, "kubelet.conf")
	Expect(clientcmd.WriteToFile(*kubeconfig, path)).To(Succeed())
	Expect(os.Chmod(path, 0o600)).To(Succeed())
	return path
}

// local turns a way to the API server into one to the local API. Limits of the client are
// off: they are not what is tested.
func local(config *rest.Config) *rest.Config {
	Expect(rest.LoadTLSFiles(config)).To(Succeed())
	config = rest.CopyConfig(config)
	config.Host = address
	config.CAData = authority
	config.QPS = -1
	return config
}

func nodeClient() kubernetes.Interface {
	return kubernetes.NewForConfigOrDie(local(identity))
}
