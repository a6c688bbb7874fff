package gate

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"rekindle.edge/agent/gate/proxy"
	"rekindle.edge/agent/timeline"
)

// takesASecond is a runtime whose calls take a second each of a clock of its own.
type takesASecond struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	now *time.Duration
}

func (r takesASecond) RunPodSandbox(context.Context, *runtimeapi.RunPodSandboxRequest) (*runtimeapi.RunPodSandboxResponse, error) {
	*r.now += time.Second
	return &runtimeapi.RunPodSandboxResponse{PodSandboxId: "s"}, nil
}

func (r takesASecond) CreateContainer(context.Context, *runtimeapi.CreateContainerRequest) (*runtimeapi.CreateContainerResponse, error) {
	*r.now += time.Second
	return &runtimeapi.CreateContainerResponse{ContainerId: "c"}, nil
}

func (r takesASecond) StartContainer(context.Context, *runtimeapi.StartContainerRequest) (*runtimeapi.StartContainerResponse, error) {
	*r.now += time.Second
	return &runtimeapi.StartContainerResponse{}, nil
}

func TestWatch(t *testing.T) {
	tests := map[string]struct {
		annotations map[string]string
		want        string
	}{
		"a pod of the API server's": {annotations: map[string]string{"kubernetes.io/config.source": "api"}, want: "uid"},
		"a static pod":              {annotations: map[string]string{"kubernetes.io/config.source": "file"}, want: "static/default/web"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			now := 10 * time.Second
			g, client := newGate(t, takesASecond{now: &now})
			g.Plug(Handlers{RunPodSandbox: func(ctx context.Context, request []byte, forward proxy.Forward) ([]byte, error) {
				now += 5 * time.Second // its turn
				return forward(ctx, request)
			}}, func() bool { return true })
			var got []timeline.CallEnded
			stop := g.Watch(func() time.Duration { return now }, func(call timeline.CallEnded) { got = append(got, call) })
			config := &runtimeapi.PodSandboxConfig{
				Metadata:    &runtimeapi.PodSandboxMetadata{Uid: "uid", Namespace: "default", Name: "web"},
				Annotations: tc.annotations,
			}
			calls := func() {
				t.Helper()
				if _, err := client.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: config}); err != nil {
					t.Fatal(err)
				}
				if _, err := client.CreateContainer(t.Context(), &runtimeapi.CreateContainerRequest{PodSandboxId: "s", SandboxConfig: config}); err != nil {
					t.Fatal(err)
				}
				for range 2 { // the second is of a container that nobody saw made
					if _, err := client.StartContainer(t.Context(), &runtimeapi.StartContainerRequest{ContainerId: "c"}); err != nil {
						t.Fatal(err)
					}
				}
			}
			calls()
			const s = time.Second
			want := []timeline.CallEnded{
				{Key: tc.want, Step: timeline.StepSandbox, Began: 10 * s, Ended: 16 * s, Runtime: s},
				{Key: tc.want, Step: timeline.StepCreate, Began: 16 * s, Ended: 17 * s, Runtime: s},
				{Key: tc.want, Step: timeline.StepStart, Began: 17 * s, Ended: 18 * s, Runtime: s},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			stop()
			calls()
			if len(got) != len(want) {
				t.Error("it goes on after it was stopped")
			}
		})
	}
}

func TestWatchThatPanicsChangesNoAnswer(t *testing.T) {
	g, client := newGate(t, fakeRuntime{})
	defer g.Watch(func() time.Duration { return 0 }, func(timeline.CallEnded) { panic("broken") })()
	response, err := client.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Uid: "uid"}}})
	if err != nil || response.GetPodSandboxId() != "made" {
		t.Errorf("response %v, error %v", response, err)
	}
}
