package source

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	podsapi "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"rekindle.edge/agent/host"
)

// podsRetry is the pause before kubelet is asked again: it refuses until it has its pods.
const podsRetry = 250 * time.Millisecond

// PodsAPI watches kubelet's own view of its pods, over the socket that kubelet has since
// 1.37 (feature PodsAPI). A status is seen there when kubelet makes it. At the API server
// it is seen when kubelet has read the pod, has patched it, one pod after the other, and
// the server has sent it back: on a busy machine that takes a quarter of a second and more.
// An older kubelet has no such socket; then the API server tells.
type PodsAPI struct {
	Clock host.Clock
	Wall  *Wall
	// Endpoint is the socket, unix://PATH.
	Endpoint string
}

// Run emits KubeletSaw until its context ends. What is gone is not its business: only the API
// server knows which pods the node shall have.
func (p PodsAPI) Run(ctx context.Context, emit Emit) {
	log := logr.FromContextOrDiscard(ctx)
	connection, err := grpc.NewClient(p.Endpoint,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{
			BaseDelay: podsRetry, Multiplier: 1, MaxDelay: podsRetry,
		}, MinConnectTimeout: time.Second}))
	if err != nil {
		log.Error(err, "Kubelet's own view of its pods cannot be watched, the API server's is used", "endpoint", p.Endpoint)
		return
	}
	defer func() { _ = connection.Close() }()
	client := podsapi.NewPodsClient(connection)
	for {
		err := p.follow(ctx, client, emit)
		log.V(1).Info("Kubelet's own view of its pods is not to be had, trying again", "reason", err.Error())
		if !host.Sleep(ctx, podsRetry) {
			return
		}
	}
}

func (p PodsAPI) follow(ctx context.Context, client podsapi.PodsClient, emit Emit) error {
	stream, err := client.WatchPods(ctx, &podsapi.WatchPodsRequest{})
	if err != nil {
		return err
	}
	for {
		event, err := stream.Recv()
		if err != nil {
			return err
		}
		at := p.Clock.Boot()
		if event.Type != podsapi.EventType_ADDED && event.Type != podsapi.EventType_MODIFIED {
			continue
		}
		pod := &corev1.Pod{}
		if err := pod.Unmarshal(event.Pod); err != nil {
			return err
		}
		emit(KubeletSaw(pod, at, p.Wall))
	}
}
