// Package daemon wires the agent: it knows which boot this is, feeds the timeline from its
// sources, keeps the store, and reports. One goroutine, the loop, owns all state.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"rekindle.edge/agent/config"
	"rekindle.edge/agent/host"
	"rekindle.edge/agent/localapi/hold"
	"rekindle.edge/agent/mirror"
	"rekindle.edge/agent/readiness/dryrun"
	"rekindle.edge/agent/report"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/agent/timeline/source"
	"rekindle.edge/agent/warmup"
	"rekindle.edge/api/v1alpha1"
)

// readyWithin is when kubelet may go ahead at the latest.
const readyWithin = 2 * time.Second

// Machine is the node as the agent sees it.
type Machine struct {
	Clock     host.Clock
	Processes source.Processes
	Units     Units
	// Runtime is the container runtime.
	Runtime runtimeapi.RuntimeServiceClient
	// BootID is the kernel's id of this boot.
	BootID func() (string, error)
	// MadeUp says that the time of day is one that the agent has set, since it was in the
	// past; unset: it never does.
	MadeUp func() bool
}

func (m Machine) madeUp() bool { return m.MadeUp != nil && m.MadeUp() }

// Units asks the service manager.
type Units interface {
	source.Units
	// Stopping says whether the whole system is going down.
	Stopping(ctx context.Context) (bool, error)
}

// Daemon is the running agent.
type Daemon struct {
	Config  config.Config
	Machine Machine
	Version string
	// StoreOptions are how the store is opened.
	StoreOptions []snapshot.Option
	// ReportJitter bounds the random wait before the first status write after the API server
	// has begun to answer.
	ReportJitter time.Duration
	// Ready is called once, when the agent has done what kubelet should wait for: its
	// store is open, or cannot be opened for now.
	Ready func()
	// Serving is the condition LocalAPIServing; unset: the agent is not installed.
	Serving func() metav1.Condition
	// Missed is what was asked for in vain while cut off; unset: nothing is served.
	Missed func() []v1alpha1.MissedResource
	// Holding tells what is held back; nil: nothing is served, or held.
	Holding *hold.Holding
	// Opened is called once, when the store is open; unset: nobody waits for it.
	Opened func(*snapshot.Store, *mirror.Mirror, Witness)
	// ContainerStarted is told of every container that was started in this boot, while the
	// boot is measured; unset: nobody asks.
	ContainerStarted func(id string)
	// Warm keeps node files and images; unset: the agent is not installed and keeps none.
	Warm *warmup.Warmup
	// DryRun says whether the node would come back; unset: nobody judges it.
	DryRun *dryrun.DryRun
	// Reporting is called once with what is reported at any time; unset: nobody else asks.
	Reporting func(func() report.Facts)
}

// Run works until ctx ends. It returns an error only if it could not write how it ended.
func (d Daemon) Run(ctx context.Context) error {
	log := logr.FromContextOrDiscard(ctx)
	ready := sync.OnceFunc(d.Ready)
	// A disk may take its time; kubelet must not wait for it.
	defer time.AfterFunc(readyWithin, ready).Stop()
	var store *snapshot.Store
	var loop *loop
	var bootID string
	ok := d.insist(ctx, "Agent cannot begin, trying again; nothing is measured until then", ready, func() error {
		var err error
		if bootID, err = d.Machine.BootID(); err != nil {
			return err
		}
		if store == nil {
			if store, err = snapshot.Open(d.Config.StateDir, log, d.StoreOptions...); err != nil {
				return fmt.Errorf("stateDir %s: %w", d.Config.StateDir, err)
			}
		}
		loop, err = d.begin(log, store, bootID)
		return err
	})
	if !ok {
		if store != nil {
			return store.Close()
		}
		return nil
	}
	m := mirror.New(store.Objects(), d.Machine.Clock.Wall, loop.signal)
	loop.adopted, loop.serving, loop.holding = m.Adopt, d.Serving, d.Holding
	m.Adopt(loop.spec)
	if d.Warm != nil {
		loop.adopted = func(spec *snapshot.Spec) {
			m.Adopt(spec)
			d.Warm.Adopt(spec)
		}
		d.Warm.Begin(ctx, warmup.Boot{
			ID: bootID, Unclean: loop.unclean, Spec: loop.spec, Objects: store.Objects(), Recovered: loop.closed, Changed: loop.signal,
		})
	}
	if d.Opened != nil {
		d.Opened(store, m, Witness{loop, d.facts(loop, m)})
	}
	if d.Reporting != nil {
		d.Reporting(d.facts(loop, m))
	}
	ready()

	// Sources end before the loop does its last writes.
	sources, stopSources := context.WithCancel(ctx)
	defer stopSources()
	var running sync.WaitGroup
	running.Go(func() { d.runUpstream(sources, loop, m) })
	running.Go(func() { d.keepAlive(sources, store, bootID) })
	if d.Warm != nil {
		running.Go(func() { d.Warm.Run(sources) })
	}
	if d.DryRun != nil {
		running.Go(func() { d.runDryRun(sources, loop, store.Objects(), loop.tracker != nil) })
	}
	if loop.tracker != nil {
		// Kubelet and the runtime are watched while there is something to time.
		running.Go(func() { d.runNodeSources(sources, loop) })
	}
	loop.run(ctx)
	stopSources()
	running.Wait()
	return errors.Join(d.stop(ctx, loop, bootID), store.Close())
}
