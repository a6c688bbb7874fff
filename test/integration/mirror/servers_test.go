package mirror

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/client-go/rest"
)

// authority signs for all servers and users of a spec, as one cluster's does: what answers
// behind a kubeconfig cannot be told by its certificate.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	next int64
}

func newAuthority() *authority {
	GinkgoHelper()
	a := &authority{dir: GinkgoT().TempDir(), next: 1}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	a.key = key
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	Expect(err).NotTo(HaveOccurred())
	a.cert, err = x509.ParseCertificate(der)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(a.file("ca.crt"), pemOf("CERTIFICATE", der), 0o600)).To(Succeed())
	crt, private := a.issue(pkix.Name{CommonName: "kube-apiserver"})
	Expect(os.WriteFile(a.file("server.crt"), crt, 0o600)).To(Succeed())
	Expect(os.WriteFile(a.file("server.key"), private, 0o600)).To(Succeed())
	_, account := a.issue(pkix.Name{CommonName: "service-account"})
	Expect(os.WriteFile(a.file("account.key"), account, 0o600)).To(Succeed())
	return a
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

func (a *authority) issue(subject pkix.Name) (crt, key []byte) {
	GinkgoHelper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	a.next++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.next), Subject: subject, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &private.PublicKey, a.key)
	Expect(err).NotTo(HaveOccurred())
	plain, err := x509.MarshalECPrivateKey(private)
	Expect(err).NotTo(HaveOccurred())
	return pemOf("CERTIFICATE", der), pemOf("EC PRIVATE KEY", plain)
}

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// user gives a client configuration for a server at address.
func (a *authority) user(address, name string, groups ...string) *rest.Config {
	GinkgoHelper()
	crt, key := a.issue(pkix.Name{CommonName: name, Organization: groups})
	return &rest.Config{Host: "https://" + address, QPS: 1000, Burst: 1000,
		TLSClientConfig: rest.TLSClientConfig{CAFile: a.file("ca.crt"), CertData: crt, KeyData: key}}
}

// server is etcd and kube-apiserver.
type server struct {
	*authority
	data     string
	port     int
	etcdPort int
	running  []*process
}

func newServer(a *authority) *server {
	GinkgoHelper()
	s := &server{authority: a, data: GinkgoT().TempDir(), port: freePort(), etcdPort: freePort()}
	DeferCleanup(s.stop)
	s.start()
	return s
}

func freePort() int {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

func (s *server) address() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

func (s *server) start() {
	GinkgoHelper()
	etcd := fmt.Sprintf("http://127.0.0.1:%d", s.etcdPort)
	peer := fmt.Sprintf("http://127.0.0.1:%d", freePort())
	s.run("etcd", "--data-dir="+filepath.Join(s.data, "etcd"), "--unsafe-no-fsync", "--log-level=error",
		"--listen-client-urls="+etcd, "--advertise-client-urls="+etcd,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer)
	s.run("kube-apiserver", "--etcd-servers="+etcd, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", s.port),
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--client-ca-file="+s.file("ca.crt"), "--tls-cert-file="+s.file("server.crt"), "--tls-private-key-file="+s.file("server.key"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file="+s.file("account.key"), "--service-account-signing-key-file="+s.file("account.key"),
		"--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.0.0.0/24", "--shutdown-delay-duration=0s")
	client, err := rest.HTTPClientFor(s.user(s.address(), "admin", "system:masters"))
	Expect(err).NotTo(HaveOccurred())
	Eventually(func(g Gomega) {
		for _, p := range s.running {
			g.Expect(p.done).NotTo(BeClosed(), p.name)
		}
		response, err := client.Get("https://" + s.address() + "/readyz")
		g.Expect(err).NotTo(HaveOccurred())
		response.Body.Close()
		g.Expect(response.StatusCode).To(Equal(http.StatusOK))
	}, time.Minute).Should(Succeed(), "kube-apiserver does not get ready")
}

// stop ends both, etcd last.
func (s *server) stop() {
	for i := len(s.running) - 1; i >= 0; i-- {
		s.running[i].end()
	}
	s.running = nil
}

// backup copies what etcd has, while nothing runs.
func (s *server) backup() string {
	GinkgoHelper()
	s.stop()
	dir := filepath.Join(GinkgoT().TempDir(), "etcd")
	Expect(os.CopyFS(dir, os.DirFS(filepath.Join(s.data, "etcd")))).To(Succeed())
	s.start()
	return dir
}

// restore puts a backup in place of what etcd has.
func (s *server) restore(backup string) {
	GinkgoHelper()
	s.stop()
	Expect(os.RemoveAll(filepath.Join(s.data, "etcd"))).To(Succeed())
	Expect(os.CopyFS(filepath.Join(s.data, "etcd"), os.DirFS(backup))).To(Succeed())
	s.start()
}

type process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{}
}

func (s *server) run(tool string, args ...string) {
	GinkgoHelper()
	path := filepath.Join(tools(), tool)
	Expect(path).To(BeAnExistingFile(), "run `make test`, which builds it")
	p := &process{name: tool, cmd: exec.Command(path, args...), done: make(chan struct{})}
	log, err := os.OpenFile(filepath.Join(s.data, tool+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	Expect(err).NotTo(HaveOccurred())
	p.cmd.Stdout, p.cmd.Stderr = log, log
	// They end with the test, whatever ends it.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	Expect(p.cmd.Start()).To(Succeed())
	go func() {
		_ = p.cmd.Wait()
		log.Close()
		close(p.done)
	}()
	s.running = append(s.running, p)
}

func (p *process) end() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(5 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

func tools() string {
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		return dir
	}
	return filepath.Join(root, "bin", "tools")
}
