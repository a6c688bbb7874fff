package order

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/watch"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"rekindle.edge/agent/gate/proxy"
)

// sandboxes is a runtime that makes any sandbox.
type sandboxes struct {
	runtimeapi.UnimplementedRuntimeServiceServer
}

func (sandboxes) RunPodSandbox(_ context.Context, r *runtimeapi.RunPodSandboxRequest) (*runtimeapi.RunPodSandboxResponse, error) {
	return &runtimeapi.RunPodSandboxResponse{PodSandboxId: "sandbox of " + r.GetConfig().GetMetadata().GetName()}, nil
}

func listen(t *testing.T, path string) net.Listener {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// TestThroughTheGate has a caller over real sockets.
func TestThroughTheGate(t *testing.T) {
	dir := t.TempDir()
	runtime := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(runtime, sandboxes{})
	runtimeSocket, socket := filepath.Join(dir, "runtime.sock"), filepath.Join(dir, "cri.sock")
	go func() { _ = runtime.Serve(listen(t, runtimeSocket)) }()
	defer runtime.Stop()

	began := time.Now()
	holder := New(Options{Log: logr.Discard(), BootID: "boot", Dir: dir, Parallel: 2, Boot: func() time.Duration { return time.Since(began) }})
	holder.Begin(oneStage(60), nil, nil)
	n := &node{T: t}
	holder.takePods(true, n.events(watch.Added, "one/a", "two/b", "two/c"))

	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	gate := &proxy.Proxy{Runtime: runtimeSocket, Log: logr.Discard(), Intercept: map[string]proxy.Handler{"/runtime.v1.RuntimeService/RunPodSandbox": holder.RunPodSandbox}}
	listener := listen(t, socket)
	go func() { served <- gate.Serve(ctx, listener) }()
	connection, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	kubelet := runtimeapi.NewRuntimeServiceClient(connection)
	asks := func(ctx context.Context, namespace, name string) error {
		response, err := kubelet.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: &runtimeapi.PodSandboxConfig{
			Metadata: &runtimeapi.PodSandboxMetadata{Namespace: namespace, Name: name, Uid: "uid-" + name},
		}})
		if err == nil && response.GetPodSandboxId() != "sandbox of "+name {
			t.Errorf("answered with %v", response)
		}
		return err
	}

	if err := asks(t.Context(), "one", "a"); err != nil {
		t.Errorf("a pod of the open stage: %v", err)
	}
	short, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
	defer cancel()
	if err := asks(short, "two", "c"); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "network is not ready") {
		t.Errorf("a call whose deadline nears: %v", err)
	}
	held := make(chan error, 1)
	go func() { held <- asks(context.WithoutCancel(t.Context()), "two", "b") }()
	time.Sleep(50 * time.Millisecond)
	// As the agent stops: both at once.
	stop()
	holder.Stop()
	if err := <-held; status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "network is not ready") {
		t.Errorf("a call that is held when the agent stops: %v", err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
