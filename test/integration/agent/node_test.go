package agent

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2/textlogger"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"rekindle.edge/agent/config"
	"rekindle.edge/agent/cri"
	"rekindle.edge/agent/daemon"
	"rekindle.edge/agent/host"
	"rekindle.edge/agent/readiness/dryrun"
	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/internal/cloud"
)

// clock is real time, moved.
type clock struct {
	mu      sync.Mutex
	started time.Time
	boot    time.Duration
	wall    time.Duration
}

func (c *clock) Boot() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.started) + c.boot
}

func (c *clock) Wall() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Round(0).Add(c.wall)
}

// pass lets time go by, step sets the wall clock.
func (c *clock) pass(d time.Duration) { c.mu.Lock(); c.boot += d; c.wall += d; c.mu.Unlock() }
func (c *clock) step(d time.Duration) { c.mu.Lock(); c.wall += d; c.mu.Unlock() }

// node is a played edge node and the agent on it.
type node struct {
	name    string
	dir     string
	link    *cloud.Link
	runtime *containerRuntime
	health  *httptest.Server
	user    client.Client

	clock    *clock
	boots    int
	kubelet  atomic.Int32
	healthy  atomic.Bool
	stopping atomic.Bool

	// judge makes what judges the node; nil: nobody does.
	judge func() *dryrun.DryRun

	stopAgent func()
	log       *cloud.Log
}

// nodes counts, so that every spec has its own.
var nodes int

// apiServer is where it listens, host:port.
func apiServer() string { return env.ControlPlane.GetAPIServer().HostPort() }

func newNode() *node {
	GinkgoHelper()
	nodes++
	n := &node{name: fmt.Sprintf("edge-%d", nodes), dir: GinkgoT().TempDir(), clock: &clock{}, stopAgent: func() {}}
	user, err := env.AddUser(envtest.User{Name: "system:node:" + n.name, Groups: []string{"system:nodes"}}, nil)
	Expect(err).NotTo(HaveOccurred())
	n.user, err = client.New(user.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	n.link = cloud.NewLink(apiServer())
	kubeconfig, err := user.KubeConfig()
	Expect(err).NotTo(HaveOccurred())
	settings, err := clientcmd.Load(kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	for _, cluster := range settings.Clusters {
		cluster.Server = "https://" + n.link.Address
	}
	Expect(clientcmd.WriteToFile(*settings, n.path("kubeconfig"))).To(Succeed())

	n.health = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !n.healthy.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	DeferCleanup(n.health.Close)
	n.runtime = &containerRuntime{socket: n.path("cri.sock")}
	n.runtime.start()
	DeferCleanup(n.runtime.stop)
	DeferCleanup(func() { n.stopAgent() })
	n.register()
	n.powerOn()
	return n
}

func (n *node) path(name string) string { return filepath.Join(n.dir, name) }

// register creates the Node and its NodeRecovery, as kubelet and the controller do.
func (n *node) register() {
	GinkgoHelper()
	Expect(admin.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name}})).To(Succeed())
	n.createRecovery(20)
}

func (n *node) createRecovery(target int32) {
	GinkgoHelper()
	Expect(admin.Create(ctx, &v1alpha1.NodeRecovery{
		ObjectMeta: metav1.ObjectMeta{Name: n.name},
		Spec:       v1alpha1.NodeRecoverySpec{PolicyName: "edge", PolicyGeneration: 1, Target: v1alpha1.RecoveryTarget{RecoverySeconds: target}},
	})).To(Succeed())
}

// bootID of the present boot.
func (n *node) bootID() string { return fmt.Sprintf("%s-boot-%d", n.name, n.boots) }

// powerOn begins a boot: kernel, init, and the agent before all else.
func (n *node) powerOn() {
	n.boots++
	n.clock.mu.Lock()
	n.clock.started, n.clock.boot = time.Now(), 0
	n.clock.mu.Unlock()
	n.kubelet.Store(0)
	n.healthy.Store(false)
	n.stopping.Store(false)
	n.runtime.reboot()
	n.startAgent()
}

// startAgent runs the agent until stopAgent.
func (n *node) startAgent() {
	n.log = &cloud.Log{}
	log := textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(1), textlogger.Output(n.log)))
	ctx, cancel := context.WithCancel(logr.NewContext(ctx, log))
	done := make(chan struct{})
	ready := make(chan struct{})
	runtime := cri.New("unix://" + n.runtime.socket)
	var judge *dryrun.DryRun
	if n.judge != nil {
		judge = n.judge()
	}
	go func() {
		defer GinkgoRecover()
		defer close(done)
		Expect(daemon.Daemon{
			Config: config.Config{
				Kubeconfig: n.path("kubeconfig"), StateDir: n.path("state"),
				KubeletHealthz: n.health.URL, KubeletRootDir: n.dir, KubeletUnit: "kubelet.service", ContainerdUnit: "containerd.service",
			},
			Machine: daemon.Machine{Clock: n.clock, Processes: n, Units: n, Runtime: runtime, BootID: func() (string, error) { return n.bootID(), nil }},
			DryRun:  judge,
			Version: "v0-test", Ready: func() { close(ready) },
		}.Run(ctx)).To(Succeed())
	}()
	n.stopAgent = sync.OnceFunc(func() {
		cancel()
		<-done
		_ = runtime.Close()
		GinkgoWriter.Printf("--- agent of %s\n%s", n.bootID(), n.log.String())
	})
	Eventually(ready).Should(BeClosed())
}

// killAgent ends the agent so that nothing it does in ending counts, as SIGKILL does: what
// lay on the disk at that moment is all that is left.
func (n *node) killAgent() {
	GinkgoHelper()
	Expect(os.CopyFS(n.path("killed"), os.DirFS(n.path("state")))).To(Succeed())
	n.stopAgent()
	Expect(os.RemoveAll(n.path("state"))).To(Succeed())
	Expect(os.Rename(n.path("killed"), n.path("state"))).To(Succeed())
}

// powerCut is the end of a boot that nobody saw coming.
func (n *node) powerCut() { GinkgoHelper(); n.killAgent() }

// shutdown is an orderly end.
func (n *node) shutdown() { n.stopping.Store(true); n.stopAgent() }

// ProcessStart implements source.Processes: init at 50 ms, a kubelet at its own id in
// milliseconds.
func (n *node) ProcessStart(pid int) (time.Duration, error) {
	if pid == 1 {
		return 50 * time.Millisecond, nil
	}
	return time.Duration(pid) * time.Millisecond, nil
}

// Command implements source.Processes.
func (n *node) Command(int) (string, error) { return "kubelet", nil }

// FindProcess implements source.Processes.
func (n *node) FindProcess(string) (int, error) { return 0, nil }

// MainPID implements daemon.Units.
func (n *node) MainPID(context.Context, string) (int, error) { return int(n.kubelet.Load()), nil }

// InitStarted implements daemon.Units: systemd has nothing to say.
func (n *node) InitStarted(context.Context) (time.Duration, error) { return 0, nil }

// Stopping implements daemon.Units.
func (n *node) Stopping(context.Context) (bool, error) { return n.stopping.Load(), nil }

var (
	_ daemon.Units = &node{}
	_ host.Clock   = &clock{}
)

// startKubelet gives kubelet a process and, a little later, health.
func (n *node) startKubelet() {
	n.kubelet.Store(int32(n.clock.Boot().Milliseconds()))
	time.Sleep(300 * time.Millisecond)
	n.healthy.Store(true)
}

// writes counts how often the agent, since its start, has written its status.
func (n *node) writes() int { return strings.Count(n.log.String(), `"Status written"`) }
