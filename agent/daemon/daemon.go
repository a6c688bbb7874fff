// Package daemon wires the agent: it knows which boot this is, feeds the timeline from its
// sources, keeps the store, and reports. One goroutine, the loop, owns all state.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"rekindle.edge/agent/boot"
	"rekindle.edge/agent/config"
	"rekindle.edge/agent/host"
	"rekindle.edge/agent/localapi/hold"
	"rekindle.edge/agent/mirror"
	"rekindle.edge/agent/readiness/dryrun"
	"rekindle.edge/agent/report"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/agent/timeline"
	"rekindle.edge/agent/timeline/source"
	"rekindle.edge/agent/upstream"
	"rekindle.edge/agent/warmup"
	"rekindle.edge/api/v1alpha1"
)

const (
	// aliveEvery is the period of the sign of life.
	aliveEvery = time.Minute
	// longestRetry is the longest pause between attempts to begin.
	longestRetry = 5 * time.Second
	// readyWithin is when kubelet may go ahead at the latest.
	readyWithin = 2 * time.Second
	// podsSocket is kubelet's, below its root directory.
	podsSocket = "pods-api/pods-api.sock"
	// stopQuestion bounds the question to systemd whether the system is stopping.
	stopQuestion = 2 * time.Second
)

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

// insist calls f until it succeeds. It is false when ctx has ended before.
func (d Daemon) insist(ctx context.Context, message string, failed func(), f func() error) bool {
	log := logr.FromContextOrDiscard(ctx)
	told := ""
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, longestRetry) {
		err := f()
		if err == nil {
			return true
		}
		if err.Error() != told {
			told = err.Error()
			log.Error(err, message)
		}
		failed()
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
}

// begin finds out which boot this is and goes on with its record, or opens one.
func (d Daemon) begin(log logr.Logger, store *snapshot.Store, bootID string) (*loop, error) {
	contents, err := store.Load()
	if err != nil {
		return nil, err
	}
	alive, err := snapshot.LastAlive(d.Config.StateDir)
	if err != nil {
		log.Error(err, "Last sign of life cannot be read, the length of the outage stays unset")
	}
	l := newLoop(log, d.Machine, store, contents, bootID)
	l.retain()
	start := decide(bootID, d.Machine.Clock.Boot(), contents, alive)
	switch {
	case start.previous == nil && contents.Mark == nil:
		log.Info("Store is new, measuring begins with the next boot", "bootID", bootID)
	case start.previous == nil:
		log.Info("Agent was restarted within a boot", "bootID", bootID, "recoveryOpen", start.open != nil)
	default:
		log.Info("Node has restarted", "bootID", bootID, "previousBootID", start.previous.BootID, "previousEnd", start.previous.End)
	}
	if start.open == nil {
		log.Info("This boot is not measured, or has been")
	} else {
		log.Info("Measuring this boot", "expectedPods", len(start.open.Expected), "notReadyBefore", start.open.NotReadyBefore, "targetSeconds", start.open.TargetSeconds)
	}
	l.adoptStart(start, boot.Mark{BootID: bootID})
	l.unclean = contents.Mark == nil || start.previous != nil && start.previous.End != v1alpha1.PreviousEndClean
	if l.tracker == nil {
		close(l.closed)
	}
	return l, nil
}

// stop writes how the agent was stopped.
func (d Daemon) stop(ctx context.Context, l *loop, bootID string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopQuestion)
	defer cancel()
	mark := boot.Mark{BootID: bootID, Stop: boot.StopAgent, StopWall: d.Machine.Clock.Wall()}
	stopping, err := d.Machine.Units.Stopping(ctx)
	if err != nil {
		l.log.Info("systemd does not say whether the system is stopping, so this is no clean end of the boot", "reason", err.Error())
	} else if stopping {
		mark.Stop = boot.StopSystem
	}
	l.log.Info("Agent is stopping", "systemStopping", stopping)
	return errors.Join(l.flush(ctx), l.store.PutMark(mark))
}

// keepAlive writes the sign of life. A disk that is full or gone is told once.
func (d Daemon) keepAlive(ctx context.Context, store *snapshot.Store, bootID string) {
	log := logr.FromContextOrDiscard(ctx)
	ticker := time.NewTicker(aliveEvery)
	defer ticker.Stop()
	told := false
	for {
		err := store.PutAlive(boot.Alive{
			BootID: bootID, Boot: d.Machine.Clock.Boot(), Wall: d.Machine.Clock.Wall(), MadeUp: d.Machine.madeUp(),
		})
		if err != nil && !told {
			log.Error(err, "Sign of life cannot be written, trying again every minute")
		}
		told = err != nil
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// runNodeSources watches kubelet and the container runtime until the record is closed.
func (d Daemon) runNodeSources(ctx context.Context, l *loop) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-l.closed:
			cancel()
		case <-ctx.Done():
		}
	}()
	var running sync.WaitGroup
	running.Go(func() {
		source.Kubelet{
			Clock: d.Machine.Clock, Processes: d.Machine.Processes, Units: d.Machine.Units,
			Unit: d.Config.KubeletUnit, Healthz: d.Config.KubeletHealthz,
		}.Run(ctx, l.emit)
	})
	running.Go(func() {
		source.CRI{
			Clock: d.Machine.Clock, Wall: l.wall, Runtime: d.Machine.Runtime, Endpoint: d.Config.CRIEndpoint, Unit: d.Config.ContainerdUnit,
		}.Run(ctx, d.emitStarts(l.emit))
	})
	running.Go(func() {
		source.PodsAPI{
			Clock: d.Machine.Clock, Wall: l.wall, Endpoint: "unix://" + filepath.Join(d.Config.KubeletRootDir, podsSocket),
		}.Run(ctx, l.emit)
	})
	running.Wait()
}

// emitStarts tells of containers before it emits their events.
func (d Daemon) emitStarts(emit source.Emit) source.Emit {
	if d.ContainerStarted == nil {
		return emit
	}
	return func(event timeline.Event) {
		if running, ok := event.(timeline.ContainerRunning); ok {
			d.ContainerStarted(running.ID)
		}
		emit(event)
	}
}

// runUpstream watches the node's pods, mirrors what they need and keeps the status.
func (d Daemon) runUpstream(ctx context.Context, l *loop, m *mirror.Mirror) {
	link := &upstream.Link{Changed: func(online bool) {
		l.emit(timeline.Answered{At: d.Machine.Clock.Boot(), Online: online})
		if online && d.Warm != nil {
			d.Warm.Online()
		}
		l.signal()
	}}
	upstream.Upstream{
		Kubeconfigs: d.Config.Kubeconfigs(), NodeName: d.Config.NodeName, Link: link,
	}.Run(ctx, func(ctx context.Context, session upstream.Session) {
		var running sync.WaitGroup
		running.Go(func() {
			source.Pods{Clock: d.Machine.Clock, Wall: l.wall, Node: session.Node}.Run(ctx, session.Core, l.emit)
		})
		running.Go(func() {
			if err := m.Run(ctx, session.Node, session.Config); err != nil {
				l.log.Error(err, "Nothing is mirrored until the kubeconfig changes")
			}
		})
		running.Go(func() {
			report.Reporter{
				Node: session.Node, Client: session.Rekindle, Wall: d.Machine.Clock.Wall, Jitter: d.ReportJitter, Since: link.Since,
				Facts: d.facts(l, m), Changed: l.changed, Adopt: l.adoptSpec, Restore: l.adoptReported,
				Heard: func() { l.heard.Store(true) },
			}.Run(ctx)
		})
		running.Wait()
	})
}
