// Package scenario puts the product on a test cluster the way a user does, and waits for
// what a user waits for. The demo and the e2e specs are written with it.
package scenario

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/cluster"
	"rekindle.edge/test/edgenode"
	"rekindle.edge/test/images"
	"rekindle.edge/test/internal/lab"
)

// managerImage is the image name in config/manager, as containerd writes it.
const managerImage = "docker.io/library/rekindle-manager:v0.1.0"

// A Product is Rekindle on a cluster: the manager as its Deployment on an always-on node.
type Product struct {
	Cluster *cluster.Cluster
	// Client is the cluster administrator's, for the test; nothing of the product has it.
	Client client.Client

	root string
	log  func(format string, args ...any)
}

// Install starts an always-on node and installs everything on an empty cluster by
// `kubectl apply -k config/default` alone. It returns when the manager is available.
func Install(ctx context.Context, c *cluster.Cluster, log func(format string, args ...any)) (*Product, error) {
	root, err := lab.ModuleRoot()
	if err != nil {
		return nil, err
	}
	p := &Product{Cluster: c, root: root, log: log}
	if p.Client, err = newClient(c); err != nil {
		return nil, err
	}
	manager, err := p.binary("rekindle-manager")
	if err != nil {
		return nil, err
	}
	cloud, err := edgenode.New(ctx, c, edgenode.Options{Name: "cloud", KubeProxy: true, Log: log})
	if err != nil {
		return nil, err
	}
	if _, err := cloud.FirstBoot(ctx, images.Image{Name: managerImage, Binary: manager}); err != nil {
		return nil, err
	}
	log("kubectl apply -k config/default")
	if _, err := p.Kubectl(ctx, "apply", "-k", filepath.Join(root, "config", "default")); err != nil {
		return nil, err
	}
	if _, err := p.Kubectl(ctx, "-n", "rekindle-system", "rollout", "status", "deployment/rekindle-manager", "--timeout=120s"); err != nil {
		state, _ := p.Kubectl(ctx, "-n", "rekindle-system", "get", "pods,events")
		return nil, fmt.Errorf("%w\n%s", err, state)
	}
	return p, nil
}

func newClient(c *cluster.Cluster) (client.Client, error) {
	if err := v1alpha1.AddToScheme(scheme.Scheme); err != nil {
		return nil, err
	}
	return client.New(c.Admin(), client.Options{Scheme: scheme.Scheme})
}

// EdgeNode boots a new node of the pool with the agent on it, which has kubelet's
// identity and no other. $REKINDLE_KUBELET picks its kubelet, newest or oldest. It returns
// when the Node is Ready.
func (p *Product) EdgeNode(ctx context.Context, name, pool string) (*edgenode.Node, error) {
	agent, err := p.binary("rekindle-agent")
	if err != nil {
		return nil, err
	}
	n, err := edgenode.New(ctx, p.Cluster, edgenode.Options{
		Name:    name,
		Kubelet: edgenode.KubeletVersion(os.Getenv("REKINDLE_KUBELET")),
		Labels:  map[string]string{v1alpha1.DefaultNodePoolLabelKey: pool},
		Agent: &edgenode.Agent{
			Binary: agent,
			Units:  []string{filepath.Join(p.root, "config", "agent", "rekindle-agent.service")},
		},
		Log: p.log,
	})
	if err != nil {
		return nil, err
	}
	_, err = n.FirstBoot(ctx)
	return n, err
}

// Apply applies a file of config/samples.
func (p *Product) Apply(ctx context.Context, sample string) error {
	p.log("kubectl apply -f config/samples/%s", sample)
	_, err := p.Kubectl(ctx, "apply", "-f", filepath.Join(p.root, "config", "samples", sample))
	return err
}

// Kubectl runs kubectl as the cluster's administrator and gives its output.
func (p *Product) Kubectl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, p.KubectlPath(), append([]string{"--kubeconfig", p.Cluster.AdminKubeconfig()}, args...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}

// KubectlPath is the kubectl of the test tools.
func (p *Product) KubectlPath() string { return filepath.Join(p.Cluster.Tools(), "kubectl") }

func (p *Product) binary(name string) (string, error) {
	path := filepath.Join(p.root, "bin", name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w: run `make build-host`", err)
	}
	return path, nil
}

// eventually polls until probe gives no error; the last error says what was missing.
func eventually(ctx context.Context, timeout time.Duration, what string, probe func() error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		err := probe()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited %s for %s: %w", timeout, what, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
