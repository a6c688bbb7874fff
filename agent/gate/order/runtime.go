package order

import (
	"context"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// statusTimeout bounds a question to the runtime.
const statusTimeout = time.Second

// Runtime is the container runtime itself, not the gate's socket.
type Runtime interface {
	Status(context.Context, *runtimeapi.StatusRequest, ...grpc.CallOption) (*runtimeapi.StatusResponse, error)
}

// NetworkReady asks a runtime whether it can give pods a network.
func NetworkReady(of Runtime) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, statusTimeout)
		defer cancel()
		status, err := of.Status(ctx, &runtimeapi.StatusRequest{})
		if err != nil {
			return false, err
		}
		for _, c := range status.GetStatus().GetConditions() {
			if c.GetType() == runtimeapi.NetworkReady {
				return c.GetStatus(), nil
			}
		}
		return true, nil
	}
}
