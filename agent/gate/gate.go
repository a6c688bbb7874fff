// Package gate is the CRI endpoint that kubelet talks to in the place of the container
// runtime. Every call passes unchanged, but for those that were given a handler, and it
// takes the time that a pod's calls need.
package gate

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"rekindle.edge/agent/gate/proxy"
	"rekindle.edge/agent/timeline"
)

const (
	runtimeService = "/runtime.v1.RuntimeService/"
	imageService   = "/runtime.v1.ImageService/"
)

// Handlers answer calls of kubelet's; one that is nil lets them pass.
type Handlers struct {
	RunPodSandbox, StopPodSandbox, RemovePodSandbox, PullImage proxy.Handler
}

// Options are what a Gate works with.
type Options struct {
	Log logr.Logger
	// Socket is the path of the socket that kubelet uses.
	Socket string
	// Endpoint is the container runtime's, as unix:///run/containerd/containerd.sock.
	Endpoint string
}

// Gate serves CRI.
type Gate struct {
	Options
	plugging sync.Mutex
	plugged  atomic.Pointer[Handlers]
	watch    atomic.Pointer[watch]
}

// New makes a Gate that lets everything pass.
func New(options Options) *Gate {
	g := &Gate{Options: options}
	g.plugged.Store(&Handlers{})
	return g
}

// Plug has handlers answer while active, from now on. Those that are nil leave what was
// plugged before.
func (g *Gate) Plug(handlers Handlers, active func() bool) {
	g.plugging.Lock()
	defer g.plugging.Unlock()
	next := *g.plugged.Load()
	for _, slot := range []struct {
		in  *proxy.Handler
		new proxy.Handler
	}{
		{&next.RunPodSandbox, handlers.RunPodSandbox},
		{&next.StopPodSandbox, handlers.StopPodSandbox},
		{&next.RemovePodSandbox, handlers.RemovePodSandbox},
		{&next.PullImage, handlers.PullImage},
	} {
		if slot.new != nil {
			*slot.in = while(active, slot.new)
		}
	}
	g.plugged.Store(&next)
}

// Watch tells of the calls that start pods, with times of clock, until stop is called. Tell
// must not wait: kubelet waits for it.
func (g *Gate) Watch(clock func() time.Duration, tell func(timeline.CallEnded)) (stop func()) {
	g.watch.Store(&watch{clock: clock, tell: tell, created: map[string]string{}})
	return func() { g.watch.Store(nil) }
}

// Serve answers on the listener until ctx ends.
func (g *Gate) Serve(ctx context.Context, listener net.Listener) error {
	return (&proxy.Proxy{Runtime: g.runtime(), Intercept: g.intercept(), Log: g.Log}).Serve(ctx, listener)
}

// Answers says whether kubelet would be answered.
func (g *Gate) Answers(ctx context.Context) error { return proxy.Answers(ctx, g.Socket) }

// Check says whether the gate does its work. What the runtime does not do is none of it.
func (g *Gate) Check(ctx context.Context) error { return proxy.Check(ctx, g.Socket, g.runtime()) }

func (g *Gate) runtime() string { return strings.TrimPrefix(g.Endpoint, "unix://") }

func (g *Gate) intercept() map[string]proxy.Handler {
	run := g.handler(func(h *Handlers) proxy.Handler { return h.RunPodSandbox })
	pull := g.handler(func(h *Handlers) proxy.Handler { return h.PullImage })
	return map[string]proxy.Handler{
		runtimeService + "RunPodSandbox":    g.timed(timeline.StepSandbox, sandboxPod, run),
		runtimeService + "StopPodSandbox":   g.handler(func(h *Handlers) proxy.Handler { return h.StopPodSandbox }),
		runtimeService + "RemovePodSandbox": g.handler(func(h *Handlers) proxy.Handler { return h.RemovePodSandbox }),
		imageService + "PullImage":          g.timed(timeline.StepPull, pullPod, pull),
		runtimeService + "CreateContainer":  g.timed(timeline.StepCreate, createPod, pass),
		runtimeService + "StartContainer":   g.timed(timeline.StepStart, startPod, pass),
	}
}

// handler asks what is plugged when the call comes.
func (g *Gate) handler(choose func(*Handlers) proxy.Handler) proxy.Handler {
	return func(ctx context.Context, request []byte, forward proxy.Forward) ([]byte, error) {
		if handler := choose(g.plugged.Load()); handler != nil {
			return handler(ctx, request, forward)
		}
		return forward(ctx, request)
	}
}

// while active a handler answers, else the call passes.
func while(active func() bool, handler proxy.Handler) proxy.Handler {
	return func(ctx context.Context, request []byte, forward proxy.Forward) ([]byte, error) {
		if !active() {
			return forward(ctx, request)
		}
		return handler(ctx, request, forward)
	}
}

func pass(ctx context.Context, request []byte, forward proxy.Forward) ([]byte, error) {
	return forward(ctx, request)
}
