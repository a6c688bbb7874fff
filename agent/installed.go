package main

import (
	"context"
	"path/filepath"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"rekindle.edge/agent/config"
	"rekindle.edge/agent/cri"
	"rekindle.edge/agent/daemon"
	"rekindle.edge/agent/gate"
	"rekindle.edge/agent/gate/order"
	"rekindle.edge/agent/host"
	"rekindle.edge/agent/localapi"
	"rekindle.edge/agent/localapi/answer"
	"rekindle.edge/agent/localapi/hold"
	"rekindle.edge/agent/mirror"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/agent/warmup"
	"rekindle.edge/agent/wiring"
)

// installed is what an agent has on top of measuring that stands between kubelet, the API
// server and the container runtime.
type installed struct {
	settings config.Config
	runtime  *cri.Client
	units    *host.Systemd
	boot     func() (string, error)

	server *localapi.Server
	missed *answer.Missed
	// holding is what is held back until the API server was heard.
	holding *hold.Holding
	cri     *gate.Gate
	starts  *order.Holder
	old     *sandboxes
	warm    *warmup.Warmup
	mode    *mode
	kubelet *kubeletState
	clock   *wallClock
}

func newInstalled(log logr.Logger, settings config.Config, runtime *cri.Client, files host.Files, units *host.Systemd) *installed {
	holding := hold.New(clock.RealClock{}, filepath.Join(wiring.RunDir, inStepFile))
	n := &installed{
		settings: settings, runtime: runtime, units: units, boot: files.BootID,
		server: localServer(log, settings), missed: &answer.Missed{}, holding: holding,
		cri:    newGate(log, settings),
		starts: newOrder(log, settings, runtime, units, holding, files.BootID),
		old:    newSandboxes(log, runtime, files.BootID),
		warm:   warmup.New(warmup.Options{StateDir: settings.StateDir, RunDir: wiring.RunDir, Root: "/", Containerd: runtime}),
		mode:   newMode(), kubelet: newKubeletState(), clock: newWallClock(),
	}
	n.server.Kubelet = kubeletOf(settings.KubeletUnit, units, files)
	n.cri.Plug(handlers(n.starts.RunPodSandbox, n.old), func() bool { return true })
	return n
}

// serve serves kubelet, and calls ready once it may start, until ctx ends.
func (n *installed) serve(ctx context.Context, ready func()) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { n.missed.Keep(ctx, filepath.Join(wiring.RunDir, missedFile)) })
	wire(ctx, n.settings, n.server, n.cri, n.units, n.mode, ready, n.kubelet.tell(logr.FromContextOrDiscard(ctx)))
}

// plug has the daemon tell of the node to what is installed, and report on it.
func (n *installed) plug(ctx context.Context, d *daemon.Daemon) {
	d.Serving, d.Missed, d.Holding, d.Warm = n.kubelet.condition, n.missed.Most, n.holding, n.warm
	d.ContainerStarted = n.starts.ContainerStarted
	d.Machine.MadeUp = n.clock.madeUp
	d.Opened = func(store *snapshot.Store, m *mirror.Mirror, witness daemon.Witness) {
		// Before kubelet and the runtime may start.
		n.catchUp(ctx, store, m)
		n.mode.open(m, witness.PolicyUnknown)
		n.old.begin(ctx, store.Objects(), witness)
		n.answers(ctx, store, m, witness)
		timeStarts(n.cri, witness)
	}
}

// catchUp sets a clock that begins in the past forward, unless the policy wants nothing
// changed on the node.
func (n *installed) catchUp(ctx context.Context, store *snapshot.Store, m *mirror.Mirror) {
	log := logr.FromContextOrDiscard(ctx)
	bootID, err := n.boot()
	if err != nil || m.Observes() {
		return // without a boot id the agent does not get here
	}
	n.clock.catchUp(log, n.settings.StateDir, bootID, store.Objects())
}
