package served

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	// imageTimeout bounds a question to the runtime: kubelet's first list waits for it.
	imageTimeout = 200 * time.Millisecond
	// imagesTimeout bounds all of them.
	imagesTimeout = time.Second
	// podLabel is kubelet's on containers.
	podLabel = "io.kubernetes.pod.uid"
)

// Runtime is what is asked of the container runtime.
type Runtime interface {
	ImageStatus(ctx context.Context, in *runtimeapi.ImageStatusRequest, opts ...grpc.CallOption) (*runtimeapi.ImageStatusResponse, error)
	ListContainers(ctx context.Context, in *runtimeapi.ListContainersRequest, opts ...grpc.CallOption) (*runtimeapi.ListContainersResponse, error)
}

// Images decides which images are taken as they are on the node.
type Images struct {
	Runtime Runtime
	// Answers says whether the registry of an image answers: then it is asked, as the pod
	// wants it.
	Answers func(image string) bool

	mu    sync.Mutex
	known map[string]bool
	ran   map[use]bool
	spent time.Duration
}

// A use of an image by a pod's container.
type use struct {
	pod              types.UID
	container, image string
}

// Local says whether a container that wants its image pulled each time may take it as it
// is on the node: its registry does not answer, it is there, and this very container ran
// with it here before. It was pulled for it then, with the pod's own credentials; a pod
// that was refused has no such container.
func (i *Images) Local(pod types.UID, container, image string) bool {
	return i.has(image) && i.ranWith(use{pod, container, image}) && !i.Answers(image)
}

// has says whether an image is on the node. If the runtime does not say, it is not. An
// answer holds for as long as the agent runs: it is asked for once, when kubelet starts.
func (i *Images) has(name string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if has, ok := i.known[name]; ok {
		return has
	}
	err := i.ask(func(ctx context.Context) error {
		status, err := i.Runtime.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: name}})
		if err == nil {
			if i.known == nil {
				i.known = map[string]bool{}
			}
			i.known[name] = status.GetImage() != nil
		}
		return err
	})
	return err == nil && i.known[name]
}

// ranWith says whether the runtime has a container of this use, which after a restart are
// those of earlier boots.
func (i *Images) ranWith(u use) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ran == nil {
		err := i.ask(func(ctx context.Context) error {
			list, err := i.Runtime.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
			if err == nil {
				i.ran = uses(list.GetContainers())
			}
			return err
		})
		if err != nil {
			return false
		}
	}
	return i.ran[u]
}

func uses(containers []*runtimeapi.Container) map[use]bool {
	all := map[use]bool{}
	for _, c := range containers {
		all[use{
			pod: types.UID(c.GetLabels()[podLabel]), container: c.GetMetadata().GetName(),
			image: c.GetImage().GetUserSpecifiedImage(),
		}] = true
	}
	return all
}

// ask puts a question to the runtime, while there is time for questions.
func (i *Images) ask(question func(context.Context) error) error {
	if i.spent > imagesTimeout {
		return context.DeadlineExceeded
	}
	begin := time.Now()
	defer func() { i.spent += time.Since(begin) }()
	ctx, cancel := context.WithTimeout(context.Background(), imageTimeout)
	defer cancel()
	return question(ctx)
}
