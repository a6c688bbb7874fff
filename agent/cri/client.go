// Package cri connects to the node's container runtime. The agent is up before the runtime
// is, and stays when the runtime is restarted.
package cri

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	// redial bounds the pause before a runtime that refused a connection is tried again.
	// A socket that nobody serves refuses at once, so trying costs next to nothing. By
	// default the pause has grown to seconds when the runtime comes up, and a recovery
	// would wait for it.
	redial = 250 * time.Millisecond
	// dialTimeout is kubelet's for a connection to the runtime.
	dialTimeout = 5 * time.Second
	// maxMessage is twice kubelet's bound of a list.
	maxMessage = 32 << 20
)

// DialOptions are those of every connection to the runtime: without TLS, which a unix
// socket has not, and tried again at most 0.3 s after it was refused.
func DialOptions() []grpc.DialOption {
	pause := backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: redial}
	return []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: pause, MinConnectTimeout: dialTimeout}),
	}
}

// Client is one connection to the runtime, for all who ask it: CRI, and by the connection
// itself what else the runtime serves.
type Client struct {
	runtimeapi.RuntimeServiceClient
	runtimeapi.ImageServiceClient
	grpc.ClientConnInterface
	close func() error
}

// New returns a client of the runtime at endpoint, unix://PATH. It connects with the first
// call, and again as soon as a runtime that was away is back. A call while it is away fails
// at once. If the endpoint is none, that is the error of every call.
func New(endpoint string) *Client {
	options := append(DialOptions(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithChainUnaryInterceptor(explain(endpoint)))
	connection, err := grpc.NewClient(endpoint, options...)
	if err != nil {
		err = fmt.Errorf("criEndpoint %s of the agent's configuration: %w", endpoint, err)
		return over(unusable{err}, func() error { return nil })
	}
	return over(connection, connection.Close)
}

func over(connection grpc.ClientConnInterface, close func() error) *Client {
	return &Client{
		runtimeapi.NewRuntimeServiceClient(connection), runtimeapi.NewImageServiceClient(connection), connection, close,
	}
}

// Close ends the connection.
func (c *Client) Close() error { return c.close() }

// explain says which socket it is when nobody answers there. The code stays what it was.
func explain(endpoint string) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, request, answer any, connection *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		err := invoke(ctx, method, request, answer, connection, options...)
		if status.Code(err) == codes.Unavailable {
			return fmt.Errorf("no container runtime answers at criEndpoint %s, see its unit: %w", endpoint, err)
		}
		return err
	}
}

// unusable is the connection to an endpoint that is none.
type unusable struct{ err error }

func (u unusable) Invoke(context.Context, string, any, any, ...grpc.CallOption) error { return u.err }

func (u unusable) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, u.err
}
