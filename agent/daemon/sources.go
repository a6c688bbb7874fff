package daemon

import (
	"context"
	"path/filepath"
	"sync"

	"rekindle.edge/agent/mirror"
	"rekindle.edge/agent/report"
	"rekindle.edge/agent/timeline"
	"rekindle.edge/agent/timeline/source"
	"rekindle.edge/agent/upstream"
)

// podsSocket is kubelet's, below its root directory.
const podsSocket = "pods-api/pods-api.sock"

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
