package proxy

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// checkTimeout bounds one question.
const checkTimeout = 1500 * time.Millisecond

// Check asks the runtime for its version through the proxy's socket, over a connection of
// its own. That the runtime does not answer is no fault of the proxy's, so it fails only
// if the runtime answers without the proxy. It takes at most 3 s.
func Check(ctx context.Context, socket, runtime string) error {
	err := version(ctx, socket)
	if err == nil || version(ctx, runtime) != nil {
		return nil
	}
	return fmt.Errorf("the container runtime answers on %s, but not through %s: %w", runtime, socket, err)
}

func version(ctx context.Context, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_, err = runtimeapi.NewRuntimeServiceClient(conn).Version(ctx, &runtimeapi.VersionRequest{})
	return err
}
