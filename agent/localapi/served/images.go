package served

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	// imageTimeout bounds a question to the runtime: kubelet's first list waits for it.
	imageTimeout = 200 * time.Millisecond
	// imagesTimeout bounds all of them.
	imagesTimeout = time.Second
)

// Images asks the container runtime which images are on the node.
type Images struct {
	// Endpoint is the runtime's, as in unix:///run/containerd/containerd.sock.
	Endpoint string

	mu     sync.Mutex
	client runtimeapi.ImageServiceClient
	known  map[string]bool
	spent  time.Duration
}

// Has says whether an image is on the node. If the runtime does not say, it is not. An
// answer holds for as long as the agent runs: it is asked for once, when kubelet starts.
func (i *Images) Has(name string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if has, ok := i.known[name]; ok {
		return has
	}
	if i.client == nil {
		connection, err := grpc.NewClient(i.Endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return false
		}
		i.client, i.known = runtimeapi.NewImageServiceClient(connection), map[string]bool{}
	}
	if i.spent > imagesTimeout {
		return false
	}
	begin := time.Now()
	defer func() { i.spent += time.Since(begin) }()
	ctx, cancel := context.WithTimeout(context.Background(), imageTimeout)
	defer cancel()
	status, err := i.client.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: name}})
	if err != nil {
		return false
	}
	i.known[name] = status.GetImage() != nil
	return i.known[name]
}
