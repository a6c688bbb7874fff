package agent

import (
	"context"
	"net"
	"os"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// containerRuntime is a CRI server: it lists what it was told to run and streams an event
// for each start.
type containerRuntime struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	socket string

	mu         sync.Mutex
	server     *grpc.Server
	sandboxes  []*runtimeapi.PodSandbox
	containers []*runtimeapi.Container
	streams    map[chan *runtimeapi.ContainerEventResponse]bool
}

// start serves; whatever ran before a reboot is not ready any more.
func (r *containerRuntime) start() {
	GinkgoHelper()
	_ = os.Remove(r.socket)
	listener, err := net.Listen("unix", r.socket)
	Expect(err).NotTo(HaveOccurred())
	server := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(server, r)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.server, r.streams = server, map[chan *runtimeapi.ContainerEventResponse]bool{}
	go func() {
		defer GinkgoRecover()
		Expect(server.Serve(listener)).To(Succeed())
	}()
}

func (r *containerRuntime) stop() {
	r.mu.Lock()
	server := r.server
	r.mu.Unlock()
	server.Stop()
}

// reboot leaves sandboxes and containers behind as a power cut does.
func (r *containerRuntime) reboot() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, sandbox := range r.sandboxes {
		sandbox.State = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
	}
	for _, container := range r.containers {
		container.State = runtimeapi.ContainerState_CONTAINER_EXITED
	}
}

// run starts a sandbox with one container. Silent: no event is sent.
func (r *containerRuntime) run(sandbox, container string, silent bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now().UnixNano()
	r.sandboxes = append(r.sandboxes, &runtimeapi.PodSandbox{Id: sandbox, State: runtimeapi.PodSandboxState_SANDBOX_READY, CreatedAt: now})
	r.containers = append(r.containers, &runtimeapi.Container{Id: container, PodSandboxId: sandbox, State: runtimeapi.ContainerState_CONTAINER_RUNNING, CreatedAt: now})
	if silent {
		return
	}
	for stream := range r.streams {
		for _, id := range []string{sandbox, container} {
			stream <- &runtimeapi.ContainerEventResponse{
				ContainerId: id, CreatedAt: now,
				ContainerEventType: runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT,
				PodSandboxStatus:   &runtimeapi.PodSandboxStatus{Id: sandbox, State: runtimeapi.PodSandboxState_SANDBOX_READY},
			}
		}
	}
}

func (r *containerRuntime) connections() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.streams)
}

func (r *containerRuntime) GetContainerEvents(_ *runtimeapi.GetEventsRequest, stream grpc.ServerStreamingServer[runtimeapi.ContainerEventResponse]) error {
	events := make(chan *runtimeapi.ContainerEventResponse, 100)
	r.mu.Lock()
	r.streams[events] = true
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.streams, events)
		r.mu.Unlock()
	}()
	for {
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case event := <-events:
			if err := stream.Send(event); err != nil {
				return err
			}
		}
	}
}

func (r *containerRuntime) ListPodSandbox(_ context.Context, request *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	response := &runtimeapi.ListPodSandboxResponse{}
	for _, sandbox := range r.sandboxes {
		if want := request.GetFilter().GetState(); want == nil || want.State == sandbox.State {
			response.Items = append(response.Items, sandbox)
		}
	}
	return response, nil
}

func (r *containerRuntime) ListContainers(_ context.Context, request *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	response := &runtimeapi.ListContainersResponse{}
	for _, container := range r.containers {
		if want := request.GetFilter().GetState(); want == nil || want.State == container.State {
			response.Containers = append(response.Containers, container)
		}
	}
	return response, nil
}
