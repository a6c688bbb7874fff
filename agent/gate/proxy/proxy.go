// Package proxy stands between kubelet and the container runtime. Calls pass as bytes,
// whatever their service and method; chosen unary ones are handed to a handler.
package proxy

import (
	"context"
	"math"
	"net"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // a caller may compress

	"rekindle.edge/agent/cri"
)

// Handler answers one unary call. The request is the message as the caller sent it.
// Forward passes a request on to the runtime under ctx and gives the runtime's answer as
// it came; the runtime's headers and trailers follow by themselves. It must be called in
// the handler's own goroutine. A handler that panics has changed nothing: the call passes
// unless it was passed already.
type Handler func(ctx context.Context, request []byte, forward Forward) (response []byte, err error)

// Forward passes one request on to the runtime.
type Forward func(ctx context.Context, request []byte) (response []byte, err error)

// drain is how long calls in progress may take when the proxy ends: less than it takes
// systemd to kill, more than it takes to make a sandbox.
const drain = 3 * time.Second

// events never ends by itself, and kubelet asks again when it does.
const events = "/runtime.v1.RuntimeService/GetContainerEvents"

// Proxy passes the calls that it is sent on to the runtime.
type Proxy struct {
	// Runtime is the path of the runtime's socket.
	Runtime string
	// Intercept has handlers by full method name, "/runtime.v1.RuntimeService/RunPodSandbox".
	// Everything else passes unchanged.
	Intercept map[string]Handler
	Log       logr.Logger
}

// Serve answers on the listener until ctx ends, and then for as long as calls in progress
// take, but no more than 3 s.
func (p *Proxy) Serve(ctx context.Context, listener net.Listener) error {
	// A connection of its own: kubelet's calls pass as bytes, and wait for nobody else's.
	runtime, err := grpc.NewClient("passthrough:///"+p.Runtime, append(cri.DialOptions(),
		grpc.WithAuthority("localhost"), // as kubelet says
		grpc.WithContextDialer(func(ctx context.Context, path string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}),
		grpc.WithIdleTimeout(0),
		grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(raw{}),
			// The limits are those of kubelet and of the runtime.
			grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(math.MaxInt32)),
	)...)
	if err != nil {
		return err
	}
	defer func() { _ = runtime.Close() }()
	server := grpc.NewServer(
		grpc.ForceServerCodecV2(raw{}),
		grpc.MaxRecvMsgSize(math.MaxInt32), grpc.MaxSendMsgSize(math.MaxInt32),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			return p.serve(ctx, runtime, stream)
		}),
	)
	var ending sync.WaitGroup
	ending.Add(1)
	stop := context.AfterFunc(ctx, func() {
		defer ending.Done()
		hard := time.AfterFunc(drain, server.Stop)
		defer hard.Stop()
		server.GracefulStop()
	})
	err = server.Serve(listener)
	if stop() {
		ending.Done()
		server.Stop()
	}
	ending.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// serve one call. Ending ends with the proxy.
func (p *Proxy) serve(ending context.Context, runtime *grpc.ClientConn, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	if method == aliveMethod {
		return stream.SendMsg(&[]byte{})
	}
	if handler := p.Intercept[method]; handler != nil {
		return (&intercepted{proxy: p, method: method, handler: handler, runtime: runtime, stream: stream}).serve()
	}
	ctx := stream.Context()
	if method == events {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(ending, cancel)()
	}
	return pass(ctx, runtime, method, stream)
}
