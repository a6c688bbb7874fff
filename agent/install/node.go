package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/clientcmd"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"rekindle.edge/agent/config"
	"rekindle.edge/agent/localapi"
	"rekindle.edge/agent/wiring"
)

// oldestContainerd is the first one that the agent works with.
var oldestContainerd = version.MustParseGeneric("2.0.0")

// questionTimeout bounds each question to kubelet, the runtime or the API server.
const questionTimeout = 3 * time.Second

// Runtime is what is asked of the container runtime.
type Runtime interface {
	Version(ctx context.Context, in *runtimeapi.VersionRequest, opts ...grpc.CallOption) (*runtimeapi.VersionResponse, error)
}

// Machine is the node that the program runs on.
type Machine struct {
	Settings config.Config
	Units    wiring.Units
	Identity *localapi.IdentitySource
	Runtime  Runtime
	// Kubelets finds a process by the name of its command, 0 if there is none.
	Kubelets func(command string) (int, error)
}

// Suits implements Node.
func (m Machine) Suits(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return errors.New("root is needed; run it with sudo")
	}
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		return errors.New("systemd does not run this node; kubelet must be a service of systemd")
	}
	scratch, err := os.MkdirTemp("", "rekindle-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	if err := wiring.Generate("/", scratch, m.Settings.KubeletUnit, m.Settings.ContainerdUnit); err != nil {
		return fmt.Errorf("%w; name kubelet's unit as kubeletUnit in %s", err, config.DefaultPath)
	}
	if _, err := m.Identity.Read(); err != nil {
		return fmt.Errorf("%w; name the file as kubeconfig in %s if it is elsewhere", err, config.DefaultPath)
	}
	pid, args, err := wiring.Service{Unit: m.Settings.KubeletUnit, Units: m.Units}.Process(ctx)
	if err != nil {
		return err
	}
	if err := m.isTheService(pid); err != nil {
		return err
	}
	if used := ownKubeconfig(args); used != "" && !slices.Contains(m.Settings.Kubeconfigs(), used) {
		return fmt.Errorf("kubelet runs with --kubeconfig=%s; name that file as kubeconfig in %s", used, config.DefaultPath)
	}
	if args != nil {
		if err := (wiring.Hook{Dir: wiring.RunDir}).RuntimeMatches(args, m.Settings.CRIEndpoint); err != nil {
			return err
		}
	}
	return m.runtimeSuits(ctx)
}

// isTheService refuses a node whose kubelet somebody else has started: the main process of its
// service is pid, 0 if that does not run.
func (m Machine) isTheService(pid int) error {
	if pid != 0 {
		return nil
	}
	other, err := m.Kubelets("kubelet")
	if err != nil || other == 0 {
		return err
	}
	return fmt.Errorf("kubelet runs as process %d, and not as %s; it must be a service of systemd: name its unit as kubeletUnit in %s", other, m.Settings.KubeletUnit, config.DefaultPath)
}

// ownKubeconfig is the file that kubelet's own arguments name, empty if none does.
func ownKubeconfig(args []string) string {
	own := ""
	for i, arg := range args {
		value, ok := strings.CutPrefix(arg, "--kubeconfig=")
		if arg == "--kubeconfig" && i+1 < len(args) {
			value, ok = args[i+1], true
		}
		if ok && filepath.Dir(value) != wiring.RunDir {
			own = value
		}
	}
	return own
}

func (m Machine) runtimeSuits(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, questionTimeout)
	defer cancel()
	answer, err := m.Runtime.Version(ctx, &runtimeapi.VersionRequest{})
	if err != nil {
		return fmt.Errorf("the container runtime does not say its version: %w; name its socket as criEndpoint in %s", err, config.DefaultPath)
	}
	return runtimeVersionSuits(answer.RuntimeName, answer.RuntimeVersion)
}

func runtimeVersionSuits(name, text string) error {
	found, err := version.ParseGeneric(text)
	if name != "containerd" || err != nil || found.LessThan(oldestContainerd) {
		return fmt.Errorf("the container runtime is %s %s, and containerd %s or later is needed", name, text, oldestContainerd)
	}
	return nil
}

// Systemctl implements Node.
func (m Machine) Systemctl(ctx context.Context, args ...string) error {
	if output, err := exec.CommandContext(ctx, "systemctl", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("systemctl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(output)))
	}
	return nil
}

// Verify implements Node. What systemd says about other units is none of ours.
func (m Machine) Verify(ctx context.Context, units ...string) error {
	output, err := exec.CommandContext(ctx, "systemd-analyze", append([]string{"verify"}, units...)...).CombinedOutput()
	for line := range strings.Lines(string(output)) {
		if strings.Contains(line, "rekindle") {
			return fmt.Errorf("systemd-analyze verify: %s", strings.TrimSpace(line))
		}
	}
	if err != nil && len(output) == 0 {
		return fmt.Errorf("systemd-analyze verify: %w", err)
	}
	return nil
}

// Kubelet implements Node.
func (m Machine) Kubelet(ctx context.Context) Kubelet {
	pid, args, err := wiring.Service{Unit: m.Settings.KubeletUnit, Units: m.Units}.Process(ctx)
	if err != nil || pid == 0 {
		return Kubelet{}
	}
	hook := wiring.Hook{Dir: wiring.RunDir}
	return Kubelet{
		Running: true,
		Wired:   hook.Wired(args),
		Hooked:  hook.IsSet(),
		Left:    hook.Left(),
		Healthy: m.healthy(ctx),
		Lease:   m.lease(ctx),
	}
}

func (m Machine) healthy(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, questionTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.Settings.KubeletHealthz, nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// lease is read from the API server itself, not through the local API.
func (m Machine) lease(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, questionTimeout)
	defer cancel()
	identity, _ := m.Identity.Read()
	if identity == nil {
		return ""
	}
	for _, path := range m.Settings.Kubeconfigs() {
		config, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			continue
		}
		client, err := coordinationv1.NewForConfig(config)
		if err != nil {
			return ""
		}
		lease, err := client.Leases("kube-node-lease").Get(ctx, identity.Node, metav1.GetOptions{})
		if err != nil {
			return ""
		}
		return lease.ResourceVersion
	}
	return ""
}

// Unhook implements Node.
func (m Machine) Unhook() error {
	address, err := netip.ParseAddr(m.Settings.LinkLocalAddress)
	if err == nil {
		err = localapi.RemoveAddress(address)
	}
	return errors.Join(err, os.RemoveAll(wiring.RunDir), os.RemoveAll(filepath.Join(m.Settings.StateDir, localapi.PKIDir)))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
