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

// aliveMethod is answered by the proxy itself.
const aliveMethod = "/rekindle.edge.Gate/Alive"

// Answers says whether the proxy on a socket answers at all, over a connection of its own.
// It takes at most 1.5 s.
func Answers(ctx context.Context, socket string) error {
	return ask(ctx, socket, func(ctx context.Context, conn *grpc.ClientConn) error {
		return conn.Invoke(ctx, aliveMethod, &[]byte{}, &[]byte{}, grpc.ForceCodecV2(raw{}))
	})
}

// Check says whether the proxy on a socket answers, and whether the runtime does through
// it. That the runtime does not answer at all is no fault of the proxy's. It takes at most
// 4.5 s.
func Check(ctx context.Context, socket, runtime string) error {
	if err := Answers(ctx, socket); err != nil {
		return fmt.Errorf("the gate does not answer on %s: %w", socket, err)
	}
	through := ask(ctx, socket, version)
	if through != nil && ask(ctx, runtime, version) == nil {
		return fmt.Errorf("the container runtime answers on %s, but not through %s: %w", runtime, socket, through)
	}
	return nil
}

func version(ctx context.Context, conn *grpc.ClientConn) error {
	_, err := runtimeapi.NewRuntimeServiceClient(conn).Version(ctx, &runtimeapi.VersionRequest{})
	return err
}

func ask(ctx context.Context, socket string, question func(context.Context, *grpc.ClientConn) error) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return question(ctx, conn)
}
