package wiring

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"rekindle.edge/agent/host"
)

// RunDir holds the wiring. It does not outlive the boot.
const RunDir = "/run/rekindle"

// Names in RunDir. The units know envFile and unhookedFile by path.
const (
	envFile        = "kubelet.env"
	kubeconfigFile = "kubelet.kubeconfig"
	criFile        = "cri.sock"
	// leftFile is there while the policy's mode is Observe.
	leftFile = "observe"
	// unhookedFile has one line for each time that the agent did not serve and kubelet was
	// restarted without it in this boot.
	unhookedFile = "unhooked"
)

// Kubelet's limit towards the local API, whose answers cost little. The local API keeps
// kubelet's usual limit towards the API server.
const (
	qps   = 500
	burst = 1000
)

// Hook points kubelet at the local API and at the gate.
type Hook struct {
	// Dir is RunDir, but for tests.
	Dir string
	// Server is the local API's address and CA its authority in PEM.
	Server string
	CA     []byte
	// Kubeconfigs are kubelet's own kubeconfig files to try.
	Kubeconfigs []string
}

// CRISocket is the path of the gate's socket, which rekindle-agent.socket knows as well.
func (h Hook) CRISocket() string { return filepath.Join(h.Dir, criFile) }

// Args are the arguments that a kubelet has which is wired. Its image service follows the
// container runtime's endpoint unless kubelet is given one, and then stays what it is. Without an empty bootstrap
// kubeconfig a kubelet whose certificate has expired would not start offline: it would
// look for the bootstrap file, which is gone once a node has joined.
func (h Hook) Args() []string {
	return []string{
		"--kubeconfig=" + filepath.Join(h.Dir, kubeconfigFile),
		"--bootstrap-kubeconfig=",
		runtimeFlag + "=unix://" + h.CRISocket(),
		fmt.Sprintf("--kube-api-qps=%d", qps),
		fmt.Sprintf("--kube-api-burst=%d", burst),
	}
}

// set writes what kubelet's next start takes up.
func (h Hook) set(m *made) error {
	kubeconfig, err := m.kubeconfigOf(h)
	if err != nil {
		return err
	}
	env := []byte(argsVariable + "=" + strings.Join(h.Args(), " ") + "\n")
	if err := os.Remove(filepath.Join(h.Dir, leftFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// The variable comes last: it names the other file.
	if err := replace(filepath.Join(h.Dir, kubeconfigFile), kubeconfig); err != nil {
		return err
	}
	return replace(filepath.Join(h.Dir, envFile), env)
}

// Unset makes kubelet's next start its own.
func (h Hook) Unset() error {
	if err := os.Remove(filepath.Join(h.Dir, envFile)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Leave is Unset by the policy's mode, and says so to who looks for the wiring.
func (h Hook) Leave() error {
	return errors.Join(replace(filepath.Join(h.Dir, leftFile), nil), h.Unset())
}

// Left says that an agent runs which leaves kubelet alone, by the policy's mode.
func (h Hook) Left() bool {
	_, err := os.Stat(filepath.Join(h.Dir, leftFile))
	return err == nil
}

// IsSet says whether kubelet's next start takes the wiring up.
func (h Hook) IsSet() bool {
	_, err := os.Stat(filepath.Join(h.Dir, envFile))
	return err == nil
}

// Wired says whether a kubelet that runs with these arguments talks to the local API and to
// the gate.
func (h Hook) Wired(args []string) bool {
	for _, want := range h.Args() {
		if !slices.Contains(args, want) {
			return false
		}
	}
	return true
}

// Pause is how long the agent must have served before it takes kubelet back, after
// kubelet was restarted without it: a minute, twice as long each time, at most an hour.
func (h Hook) Pause() time.Duration {
	data, err := os.ReadFile(filepath.Join(h.Dir, unhookedFile))
	if err != nil {
		return 0
	}
	times := bytes.Count(data, []byte("\n"))
	if times == 0 {
		return 0
	}
	return min(time.Minute<<min(times-1, 6), time.Hour)
}

// kubeconfig is kubelet's own with the local API in the place of the API server.
func (h Hook) kubeconfig() ([]byte, error) {
	var errs []error
	for _, path := range h.Kubeconfigs {
		own, err := clientcmd.LoadFromFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
			continue
		}
		if err == nil {
			err = clientcmd.ResolveLocalPaths(own)
		}
		if err != nil {
			return nil, fmt.Errorf("kubelet's kubeconfig %s: %w", path, err)
		}
		current := own.Contexts[own.CurrentContext]
		if current == nil {
			return nil, fmt.Errorf("kubelet's kubeconfig %s: current-context: %q is no context of it", path, own.CurrentContext)
		}
		own.Clusters[current.Cluster] = &clientcmdapi.Cluster{Server: h.Server, CertificateAuthorityData: h.CA}
		return clientcmd.Write(*own)
	}
	return nil, fmt.Errorf("no kubeconfig of kubelet: %w", errors.Join(errs...))
}

// replace writes a file unless it has that content. What holds credentials is root's alone.
func replace(path string, content []byte) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return host.WriteFile(path, content, 0o600)
}
