package source

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"rekindle.edge/agent/cri"
	"rekindle.edge/agent/timeline"
)

// fakeRuntime lists and streams what it is given.
type fakeRuntime struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	sandboxes  []*runtimeapi.PodSandbox
	containers []*runtimeapi.Container
	events     []*runtimeapi.ContainerEventResponse
	noStream   bool
}

func (f *fakeRuntime) ListPodSandbox(context.Context, *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	return &runtimeapi.ListPodSandboxResponse{Items: f.sandboxes}, nil
}

func (f *fakeRuntime) ListContainers(context.Context, *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	return &runtimeapi.ListContainersResponse{Containers: f.containers}, nil
}

func (f *fakeRuntime) GetContainerEvents(_ *runtimeapi.GetEventsRequest, stream grpc.ServerStreamingServer[runtimeapi.ContainerEventResponse]) error {
	if f.noStream {
		return status.Error(codes.Unimplemented, "no events here")
	}
	for _, event := range f.events {
		if err := stream.Send(event); err != nil {
			return err
		}
	}
	<-stream.Context().Done()
	return nil
}

func started(id string, at time.Time, sandbox bool) *runtimeapi.ContainerEventResponse {
	event := &runtimeapi.ContainerEventResponse{ContainerId: id, CreatedAt: at.UnixNano(),
		ContainerEventType: runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT,
		PodSandboxStatus:   &runtimeapi.PodSandboxStatus{Id: "s1"}}
	if sandbox {
		event.PodSandboxStatus.Id = id
	}
	return event
}

func TestCRI(t *testing.T) {
	const now = 20 * time.Second
	at := func(d time.Duration) time.Time { return noon.Add(d) }
	listed := func(state runtimeapi.PodSandboxState, created time.Duration) []*runtimeapi.PodSandbox {
		return []*runtimeapi.PodSandbox{{Id: "s0", State: state, CreatedAt: at(created).UnixNano()}}
	}
	cases := map[string]struct {
		runtime *fakeRuntime
		// stepped moves the wall clock by years before anything is seen.
		stepped bool
		want    []timeline.Event
	}{
		"an event is of the time that the runtime gives": {
			runtime: &fakeRuntime{events: []*runtimeapi.ContainerEventResponse{started("s1", at(12*time.Second), true), started("c1", at(13*time.Second), false)}},
			want:    []timeline.Event{timeline.SandboxReady{ID: "s1", At: 12 * time.Second}, timeline.ContainerRunning{ID: "c1"}},
		},
		"an event from before the wall clock was set is of the time of its arrival": {
			runtime: &fakeRuntime{events: []*runtimeapi.ContainerEventResponse{started("s1", at(12*time.Second), true)}},
			stepped: true,
			want:    []timeline.Event{timeline.SandboxReady{ID: "s1", At: now}},
		},
		"events that start nothing are passed over": {
			runtime: &fakeRuntime{events: []*runtimeapi.ContainerEventResponse{
				{ContainerId: "c9", ContainerEventType: runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT},
				{ContainerId: "c8", ContainerEventType: runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT},
				{ContainerId: "c7", ContainerEventType: runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT},
				{ContainerId: "c1", ContainerEventType: runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT},
			}},
			want: []timeline.Event{timeline.ContainerRunning{ID: "c1"}},
		},
		"what runs already is found in the lists": {
			runtime: &fakeRuntime{sandboxes: listed(runtimeapi.PodSandboxState_SANDBOX_READY, 5*time.Second),
				containers: []*runtimeapi.Container{{Id: "c0", State: runtimeapi.ContainerState_CONTAINER_RUNNING}}},
			want: []timeline.Event{timeline.SandboxReady{ID: "s0", At: 5 * time.Second, Listed: true}, timeline.ContainerRunning{ID: "c0"}},
		},
		"what the boot before left is not of this boot": {
			runtime: &fakeRuntime{sandboxes: listed(runtimeapi.PodSandboxState_SANDBOX_NOTREADY, -5*time.Second),
				containers: []*runtimeapi.Container{{Id: "c0", State: runtimeapi.ContainerState_CONTAINER_EXITED}, {Id: "c1", State: runtimeapi.ContainerState_CONTAINER_RUNNING}}},
			want: []timeline.Event{timeline.ContainerRunning{ID: "c1"}},
		},
		"a runtime without a stream is listed again and again": {
			runtime: &fakeRuntime{noStream: true, containers: []*runtimeapi.Container{{Id: "c0", State: runtimeapi.ContainerState_CONTAINER_RUNNING}}},
			want:    []timeline.Event{timeline.ContainerRunning{ID: "c0"}, timeline.ContainerRunning{ID: "c0"}, timeline.ContainerRunning{ID: "c0"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			socket := filepath.Join(t.TempDir(), "s")
			listener, err := net.Listen("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			server := grpc.NewServer()
			runtimeapi.RegisterRuntimeServiceServer(server, tc.runtime)
			go func() { _ = server.Serve(listener) }()
			defer server.Stop()

			clocks := &twoClocks{wall: noon}
			wall := NewWall(clocks)
			clocks.pass(now)
			if tc.stepped {
				clocks.step(10 * 365 * 24 * time.Hour)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			events := make(chan timeline.Event, 100)
			client := cri.New("unix://" + socket)
			defer func() { _ = client.Close() }()
			go CRI{Clock: clocks, Wall: wall, Runtime: client}.Run(ctx, func(event timeline.Event) { events <- event })
			var got []timeline.Event
			for range tc.want {
				select {
				case event := <-events:
					got = append(got, event)
				case <-ctx.Done():
					t.Fatalf("got %v, want %v", got, tc.want)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}
