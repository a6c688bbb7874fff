package source

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"rekindle.edge/agent/host"
	"rekindle.edge/agent/timeline"
)

const (
	// criRetry is the pause before the runtime is asked again: while it is away that costs
	// nothing, and it bounds what is missed.
	criRetry = 100 * time.Millisecond
	// criListTimeout bounds a list.
	criListTimeout = 10 * time.Second
	// criPoll is how often a runtime without an event stream is listed.
	criPoll = 500 * time.Millisecond
	// criRelist is how often one with a stream is: an event that was lost must not keep a
	// pod from being Ready.
	criRelist = 5 * time.Second
	// criComplainAfter is how long the runtime may be missing before it is worth a line.
	criComplainAfter = 15 * time.Second
)

// CRI watches pod sandboxes and containers come up in the container runtime.
type CRI struct {
	Clock host.Clock
	Wall  *Wall
	// Runtime is asked, at the socket Endpoint, which is for messages.
	Runtime  runtimeapi.RuntimeServiceClient
	Endpoint string
	// Unit is the runtime's service unit, for messages.
	Unit string
}

// Run emits SandboxReady and ContainerRunning until its context ends. It asks again
// whenever the runtime goes away: a restart of the runtime is no restart of the node.
func (c CRI) Run(ctx context.Context, emit Emit) {
	log := logr.FromContextOrDiscard(ctx)
	missingSince, told := c.Clock.Boot(), false
	for {
		err := c.follow(ctx, emit, func() {
			if told {
				log.Info("Container runtime answers", "endpoint", c.Endpoint)
			}
			told, missingSince = false, 0
		})
		if ctx.Err() != nil {
			return
		}
		if missingSince == 0 {
			missingSince = c.Clock.Boot()
		}
		if !told && c.Clock.Boot()-missingSince > criComplainAfter {
			log.Error(err, "Container runtime does not answer, trying again; check criEndpoint in the agent's configuration and the unit",
				"endpoint", c.Endpoint, "unit", c.Unit)
			told = true
		}
		if !host.Sleep(ctx, criRetry) {
			return
		}
	}
}

// follow reads events until the stream breaks.
func (c CRI) follow(ctx context.Context, emit Emit, connected func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	// The stream comes first: what happens between a list and a stream would be lost.
	stream, err := c.Runtime.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	if err != nil {
		return fmt.Errorf("opening the event stream of the container runtime: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.read(stream, emit) }()
	every := criRelist
	for {
		// The runtime does not answer before it has recovered what was there at its start.
		if err := c.list(ctx, emit, connected); err != nil {
			return err
		}
		timer := time.NewTimer(every)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		case err := <-ended:
			timer.Stop()
			if status.Code(err) != codes.Unimplemented {
				return fmt.Errorf("event stream of the container runtime: %w", err)
			}
			ended, every = nil, criPoll
		}
	}
}

func (c CRI) read(stream grpc.ServerStreamingClient[runtimeapi.ContainerEventResponse], emit Emit) error {
	for {
		event, err := stream.Recv()
		if err != nil {
			return err
		}
		arrived := c.Clock.Boot()
		if event.ContainerEventType != runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT {
			continue
		}
		sandbox := event.PodSandboxStatus
		if sandbox == nil || sandbox.Id != event.ContainerId {
			emit(timeline.ContainerRunning{ID: event.ContainerId})
			continue
		}
		// A runtime keeps events for a while for who comes late, so its own stamp tells
		// more than the arrival.
		at, ok := c.Wall.Convert(time.Unix(0, event.CreatedAt))
		if !ok || at > arrived {
			at = arrived
		}
		emit(timeline.SandboxReady{ID: sandbox.Id, At: at})
	}
}

// list catches up with what happened before the stream was open. A sandbox or container
// that runs was started in this boot; those of earlier boots are not ready any more.
func (c CRI) list(ctx context.Context, emit Emit, connected func()) error {
	ctx, cancel := context.WithTimeout(ctx, criListTimeout)
	defer cancel()
	sandboxes, err := c.Runtime.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{
		State: &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_READY},
	}})
	if err != nil {
		return fmt.Errorf("listing pod sandboxes: %w", err)
	}
	arrived := c.Clock.Boot()
	containers, err := c.Runtime.ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{
		State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING},
	}})
	if err != nil {
		return fmt.Errorf("listing containers: %w", err)
	}
	connected()
	for _, sandbox := range sandboxes.Items {
		if sandbox.State != runtimeapi.PodSandboxState_SANDBOX_READY {
			continue
		}
		// Its creation is the best there is; it became ready a little later.
		at, ok := c.Wall.Convert(time.Unix(0, sandbox.CreatedAt))
		if !ok || at > arrived {
			at = arrived
		}
		emit(timeline.SandboxReady{ID: sandbox.Id, At: at, Listed: true})
	}
	for _, container := range containers.Containers {
		if container.State == runtimeapi.ContainerState_CONTAINER_RUNNING {
			emit(timeline.ContainerRunning{ID: container.Id})
		}
	}
	return nil
}
