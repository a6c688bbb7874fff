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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podsapi "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"rekindle.edge/agent/timeline"
)

// fakeKubelet refuses until it has its pods, and then sends them.
type fakeKubelet struct {
	podsapi.UnimplementedPodsServer
	asked chan struct{}
	pod   *corev1.Pod
}

func (f *fakeKubelet) WatchPods(_ *podsapi.WatchPodsRequest, stream grpc.ServerStreamingServer[podsapi.WatchPodsEvent]) error {
	select {
	case f.asked <- struct{}{}:
		return status.Error(codes.FailedPrecondition, "Kubelet is initializing")
	default:
	}
	data, err := f.pod.Marshal()
	if err != nil {
		return err
	}
	for _, event := range []*podsapi.WatchPodsEvent{
		{Type: podsapi.EventType_ADDED, Pod: data},
		{Type: podsapi.EventType_INITIAL_SYNC_COMPLETE},
		{Type: podsapi.EventType_DELETED, Pod: data},
		{Type: podsapi.EventType_MODIFIED, Pod: data},
	} {
		if err := stream.Send(event); err != nil {
			return err
		}
	}
	<-stream.Context().Done()
	return nil
}

func TestPodsAPI(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid"},
		Status: corev1.PodStatus{
			Phase:             corev1.PodRunning,
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(7 * time.Second))}},
			ContainerStatuses: []corev1.ContainerStatus{{ContainerID: "containerd://c1"}},
		},
	}
	socket := filepath.Join(t.TempDir(), "s")
	clocks := &twoClocks{wall: noon}
	wall := NewWall(clocks)
	clocks.pass(20 * time.Second)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	events := make(chan timeline.Event, 10)
	// The socket is not there yet when the agent begins.
	go PodsAPI{Clock: clocks, Wall: wall, Endpoint: "unix://" + socket}.Run(ctx, func(event timeline.Event) { events <- event })
	time.Sleep(podsRetry)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	podsapi.RegisterPodsServer(server, &fakeKubelet{asked: make(chan struct{}, 2), pod: pod})
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()

	want := timeline.KubeletSaw{PodSeen: timeline.PodSeen{At: 20 * time.Second, Pod: timeline.ViewPod(pod), ReadyBy: 8 * time.Second}}
	for range 2 {
		select {
		case got := <-events:
			if diff := cmp.Diff(timeline.Event(want), got); diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
		case <-ctx.Done():
			t.Fatal("no event of a pod that was added and then changed")
		}
	}
}
