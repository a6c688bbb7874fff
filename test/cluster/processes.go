package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"rekindle.edge/test/internal/lab"
)

const (
	// startTimeout bounds the start of one component, seconds on an idle machine.
	startTimeout = 90 * time.Second
	stopGrace    = 3 * time.Second
	pollInterval = 50 * time.Millisecond
)

func (c *Cluster) startEtcd(client, peer netip.AddrPort) error {
	c.etcdURL = "http://" + client.String()
	_, err := c.run("etcd",
		"--data-dir="+c.file("etcd"),
		"--listen-client-urls="+c.etcdURL, "--advertise-client-urls="+c.etcdURL,
		"--listen-peer-urls=http://"+peer.String(), "--initial-advertise-peer-urls=http://"+peer.String(),
		"--initial-cluster=default=http://"+peer.String(),
		// The control plane is never powered off here; nodes are.
		"--unsafe-no-fsync")
	return err
}

// StartAPIServer starts kube-apiserver, at first or after StopAPIServer, and returns when it is ready.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	args := []string{
		"--etcd-servers=" + c.etcdURL,
		"--bind-address=" + c.address.Addr().String(), fmt.Sprintf("--secure-port=%d", c.address.Port()),
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--client-ca-file=" + c.file("ca.crt"),
		"--tls-cert-file=" + c.file("apiserver.crt"), "--tls-private-key-file=" + c.file("apiserver.key"),
		"--kubelet-client-certificate=" + c.file("kubelet-client.crt"), "--kubelet-client-key=" + c.file("kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + c.file("service-account.key"),
		"--service-account-signing-key-file=" + c.file("service-account.key"),
		"--allow-privileged=true",
		// A stop must not take as long as open watches do.
		"--shutdown-delay-duration=0s",
	}
	if c.network != nil {
		args = append(args,
			"--service-cluster-ip-range="+c.network.ServiceCIDR().String(),
			"--advertise-address="+c.address.Addr().String())
	} else {
		// A loopback address cannot be an endpoint of the kubernetes Service; nobody asks for it.
		args = append(args, "--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.0.0.0/24")
	}
	process, err := c.run("kube-apiserver", args...)
	if err != nil {
		return err
	}
	c.api = process
	client, err := rest.HTTPClientFor(c.Admin())
	if err != nil {
		return err
	}
	return c.await(ctx, process, "kube-apiserver to be ready", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+c.address.String()+"/readyz", nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("/readyz answers %s", response.Status)
		}
		return nil
	})
}

// StopAPIServer ends kube-apiserver alone; its address then refuses connections.
func (c *Cluster) StopAPIServer() { c.api.Stop(stopGrace) }

// StartControllers starts kube-controller-manager, at first or after StopControllers.
func (c *Cluster) StartControllers() error {
	manager, err := c.run("kube-controller-manager",
		"--kubeconfig="+c.file("kube-controller-manager.kubeconfig"), "--use-service-account-credentials",
		"--service-account-private-key-file="+c.file("service-account.key"), "--root-ca-file="+c.file("ca.crt"),
		"--leader-elect=false", "--secure-port=0")
	c.manager = manager
	return err
}

// StopControllers ends kube-controller-manager: nothing is done about nodes that are not heard.
func (c *Cluster) StopControllers() { c.manager.Stop(stopGrace) }

// startControllers starts kube-controller-manager and kube-scheduler and waits for
// the service account without which no pod can be created.
func (c *Cluster) startControllers(ctx context.Context) error {
	if err := c.StartControllers(); err != nil {
		return err
	}
	if _, err := c.run("kube-scheduler",
		"--kubeconfig="+c.file("kube-scheduler.kubeconfig"), "--leader-elect=false", "--secure-port=0"); err != nil {
		return err
	}
	clientset, err := kubernetes.NewForConfig(c.Admin())
	if err != nil {
		return err
	}
	return c.await(ctx, c.manager, "service account default/default", func(ctx context.Context) error {
		_, err := clientset.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

func (c *Cluster) run(tool string, args ...string) (*lab.Process, error) {
	binary := filepath.Join(c.tools, tool)
	if _, err := os.Stat(binary); err != nil {
		return nil, fmt.Errorf("%w: build the test tools with make, or set REKINDLE_TOOLS to their folder", err)
	}
	c.log("starting %s", tool)
	cmd := exec.Command(binary, args...)
	if c.network != nil {
		// In the world the control plane has cores of its own: it must not wait for those
		// of a node that boots.
		cmd = exec.Command("nice", append([]string{"-n", "-10", binary}, args...)...)
	}
	cmd.Dir = c.file("")
	return c.lab.Start(tool, cmd)
}

// await polls until probe gives no error; a process that ends meanwhile ends the wait.
func (c *Cluster) await(ctx context.Context, process *lab.Process, what string, probe func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var last error
	for {
		if last = probe(ctx); last == nil {
			return nil
		}
		select {
		case <-process.Done():
			return fmt.Errorf("waiting for %s: %w", what, process.Err())
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, errors.Join(ctx.Err(), last))
		case <-time.After(pollInterval):
		}
	}
}
