package snapshot

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Of kubelet's marks on a sandbox.
const (
	labelPodUID      = "io.kubernetes.pod.uid"
	annotationSource = "kubernetes.io/config.source"
	sourceAPI        = "api"
)

// runtimeTimeout bounds one question to the runtime.
const runtimeTimeout = 5 * time.Second

// Lister is what is asked of the container runtime.
type Lister interface {
	ListPodSandbox(ctx context.Context, in *runtimeapi.ListPodSandboxRequest, opts ...grpc.CallOption) (*runtimeapi.ListPodSandboxResponse, error)
}

// Runtime asks the container runtime.
func Runtime(of Lister) Sandboxes {
	return func(ctx context.Context) ([]Sandbox, error) {
		ctx, cancel := context.WithTimeout(ctx, runtimeTimeout)
		defer cancel()
		list, err := of.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
		if err != nil {
			return nil, fmt.Errorf("container runtime: %w", err)
		}
		var found []Sandbox
		for _, item := range list.Items {
			// A sandbox without the label is nobody's pod.
			if uid := item.Labels[labelPodUID]; uid != "" {
				source := item.Annotations[annotationSource]
				found = append(found, Sandbox{UID: uid, Static: source != "" && source != sourceAPI})
			}
		}
		return found, nil
	}
}
