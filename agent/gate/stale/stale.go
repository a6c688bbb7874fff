package stale

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"rekindle.edge/agent/gate/proxy"
)

const (
	// listTimeout bounds the first list of a boot: the first sandbox waits for it.
	listTimeout = 2 * time.Second
	// statusTimeout bounds a question about one sandbox, or the network.
	statusTimeout = time.Second
	// viewFor is how long a look at the leases is good for: kubelet stops many sandboxes at once.
	viewFor = 100 * time.Millisecond
	// networksFor is how long the network configuration is taken as read.
	networksFor = 5 * time.Second
)

// Runtime is the container runtime itself, not the gate's socket.
type Runtime interface {
	ListPodSandbox(context.Context, *runtimeapi.ListPodSandboxRequest, ...grpc.CallOption) (*runtimeapi.ListPodSandboxResponse, error)
	PodSandboxStatus(context.Context, *runtimeapi.PodSandboxStatusRequest, ...grpc.CallOption) (*runtimeapi.PodSandboxStatusResponse, error)
	StopPodSandbox(context.Context, *runtimeapi.StopPodSandboxRequest, ...grpc.CallOption) (*runtimeapi.StopPodSandboxResponse, error)
	Status(context.Context, *runtimeapi.StatusRequest, ...grpc.CallOption) (*runtimeapi.StatusResponse, error)
}

// Options are what Sandboxes works with.
type Options struct {
	Log     logr.Logger
	Runtime Runtime
	// Dir is the directory in /run for what outlives a restart of the agent.
	Dir string
	// BootID is the kernel's id of this boot. Unset: nothing is deferred.
	BootID string
	// Recovering says whether the node is still coming back. Once it is not, it never is
	// again in this boot.
	Recovering func() bool
	// Expected is how many pods with an address of their own the node has; unset, or less
	// than the sandboxes of earlier boots show: as many as those belonged to.
	Expected func() int
}

// Sandboxes defers the stops of sandboxes of earlier boots.
type Sandboxes struct {
	Options

	// root of the node's files, the pauses of Run, and viewFor; tests set them.
	root               string
	pace, retry, fresh time.Duration

	// passing bounds how many stops are carried out at once while pods start.
	passing chan struct{}

	mu    sync.Mutex
	state *state

	viewMu   sync.Mutex
	lastView view
	viewed   time.Time

	networkMu    sync.Mutex
	networks     []network
	networksRead time.Time
	told         string
}

// New makes Sandboxes; Run carries out what they defer.
func New(options Options) *Sandboxes {
	return &Sandboxes{Options: options, root: "/", pace: 500 * time.Millisecond, retry: 30 * time.Second, fresh: viewFor,
		passing: make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// Stop answers StopPodSandbox.
func (s *Sandboxes) Stop(ctx context.Context, request []byte, forward proxy.Forward) ([]byte, error) {
	var stop runtimeapi.StopPodSandboxRequest
	if err := proto.Unmarshal(request, &stop); err != nil {
		return forward(ctx, request)
	}
	id := stop.GetPodSandboxId()
	if !s.isStale(ctx, id) {
		return forward(ctx, request)
	}
	if s.Recovering() && s.notReady(ctx, id) {
		switch v := s.view(ctx).decide(id); v {
		case deferred:
			if err := s.set(id, acknowledged); err != nil {
				s.Log.Error(err, "Stop is carried out at once, it could not be kept for later", "sandbox", id)
				break
			}
			if !s.Recovering() {
				break // Run may have seen that nothing waits
			}
			s.Log.V(1).Info("Stop is deferred", "sandbox", id)
			return proto.Marshal(&runtimeapi.StopPodSandboxResponse{})
		default:
			s.Log.V(1).Info("Stop is carried out at once", "sandbox", id, "reason", v)
			select {
			case s.passing <- struct{}{}:
				defer func() { <-s.passing }()
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}
	response, err := forward(ctx, request)
	if err == nil {
		s.isDone(id)
	}
	return response, err
}

// Remove answers RemovePodSandbox. A runtime stops what it removes, so that of a sandbox
// whose stop waits is left for later too: kubelet's collection of garbage asks again each
// minute, for as long as the sandbox is listed.
func (s *Sandboxes) Remove(ctx context.Context, request []byte, forward proxy.Forward) ([]byte, error) {
	var remove runtimeapi.RemovePodSandboxRequest
	if err := proto.Unmarshal(request, &remove); err != nil {
		return forward(ctx, request)
	}
	id := remove.GetPodSandboxId()
	if s.is(id, acknowledged) && s.Recovering() && s.notReady(ctx, id) {
		s.Log.V(1).Info("Removal is left for later", "sandbox", id)
		return proto.Marshal(&runtimeapi.RemovePodSandboxResponse{})
	}
	response, err := forward(ctx, request)
	if err == nil {
		s.isDone(id)
	}
	return response, err
}
