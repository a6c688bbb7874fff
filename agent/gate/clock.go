package gate

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"rekindle.edge/agent/gate/proxy"
	"rekindle.edge/agent/timeline"
)

// watch is told of the calls that start pods.
type watch struct {
	clock func() time.Duration
	tell  func(timeline.CallEnded)

	mu sync.Mutex
	// created are the pods of containers that were created and not started.
	created map[string]string
}

// maxCreated bounds the containers that were created and are never started.
const maxCreated = 4096

// timed tells the watch of a call, with the pod that it is for. The call is answered first,
// whatever cannot be read of it.
func (g *Gate) timed(step timeline.Step, pod func(w *watch, request, response []byte) string, handler proxy.Handler) proxy.Handler {
	return func(ctx context.Context, request []byte, forward proxy.Forward) ([]byte, error) {
		w := g.watch.Load()
		if w == nil {
			return handler(ctx, request, forward)
		}
		var runtime time.Duration
		began := w.clock()
		response, err := handler(ctx, request, func(ctx context.Context, request []byte) ([]byte, error) {
			asked := w.clock()
			defer func() { runtime += w.clock() - asked }()
			return forward(ctx, request)
		})
		call := timeline.CallEnded{Step: step, Began: began, Ended: w.clock(), Runtime: runtime}
		g.report(w, call, func() string { return pod(w, request, response) })
		return response, err
	}
}

// report a call of a pod's. The call has its answer: no trouble here may change it.
func (g *Gate) report(w *watch, call timeline.CallEnded, pod func() string) {
	defer func() {
		if problem := recover(); problem != nil {
			g.Log.Error(fmt.Errorf("panic: %v", problem), "Call is not measured")
		}
	}()
	if call.Key = pod(); call.Key != "" {
		w.tell(call)
	}
}

func sandboxPod(_ *watch, request, _ []byte) string {
	return podOf(request, &runtimeapi.RunPodSandboxRequest{}, (*runtimeapi.RunPodSandboxRequest).GetConfig)
}

func pullPod(_ *watch, request, _ []byte) string {
	return podOf(request, &runtimeapi.PullImageRequest{}, (*runtimeapi.PullImageRequest).GetSandboxConfig)
}

func createPod(w *watch, request, response []byte) string {
	key := podOf(request, &runtimeapi.CreateContainerRequest{}, (*runtimeapi.CreateContainerRequest).GetSandboxConfig)
	var created runtimeapi.CreateContainerResponse
	if proto.Unmarshal(response, &created) != nil || created.GetContainerId() == "" {
		return key
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.created) < maxCreated {
		w.created[created.GetContainerId()] = key
	}
	return key
}

func startPod(w *watch, request, _ []byte) string {
	var start runtimeapi.StartContainerRequest
	if proto.Unmarshal(request, &start) != nil {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	key := w.created[start.GetContainerId()]
	delete(w.created, start.GetContainerId())
	return key
}

// podOf is the key of the pod whose sandbox a request describes, empty if it does not.
func podOf[M proto.Message](request []byte, message M, config func(M) *runtimeapi.PodSandboxConfig) string {
	if proto.Unmarshal(request, message) != nil {
		return ""
	}
	sandbox := config(message)
	pod := sandbox.GetMetadata()
	return timeline.Key(pod.GetUid(), pod.GetNamespace()+"/"+pod.GetName(), sandbox.GetAnnotations())
}
