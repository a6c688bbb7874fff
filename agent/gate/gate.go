// Package gate is the CRI endpoint that kubelet talks to in the place of the container
// runtime. Every call passes unchanged, but for those that were given a handler, and it
// takes the time that a pod's calls need.
package gate

import (
	"context"
	"net"
	"strings"
	"sync/atomic"

	"github.com/go-logr/logr"

	"rekindle.edge/agent/gate/proxy"
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
	plugged atomic.Pointer[plugged]
}

// plugged are handlers, and whether they are to be asked at the moment.
type plugged struct {
	Handlers
	active func() bool
}

// New makes a Gate that lets everything pass.
func New(options Options) *Gate {
	g := &Gate{Options: options}
	g.plugged.Store(&plugged{active: func() bool { return false }})
	return g
}

// Plug has handlers answer while active, from now on.
func (g *Gate) Plug(handlers Handlers, active func() bool) {
	g.plugged.Store(&plugged{Handlers: handlers, active: active})
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
	return map[string]proxy.Handler{
		runtimeService + "RunPodSandbox":    g.handler(func(h *plugged) proxy.Handler { return h.RunPodSandbox }),
		runtimeService + "StopPodSandbox":   g.handler(func(h *plugged) proxy.Handler { return h.StopPodSandbox }),
		runtimeService + "RemovePodSandbox": g.handler(func(h *plugged) proxy.Handler { return h.RemovePodSandbox }),
		imageService + "PullImage":          g.handler(func(h *plugged) proxy.Handler { return h.PullImage }),
	}
}

// handler asks what is plugged when the call comes.
func (g *Gate) handler(choose func(*plugged) proxy.Handler) proxy.Handler {
	return func(ctx context.Context, request []byte, forward proxy.Forward) ([]byte, error) {
		now := g.plugged.Load()
		if handler := choose(now); handler != nil && now.active() {
			return handler(ctx, request, forward)
		}
		return forward(ctx, request)
	}
}
