package proxy

import (
	"context"
	"errors"
	"io"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// anyStream is a call of any kind: unary ones are streams of one message.
var anyStream = &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}

// pass a whole call on. Its deadline and its cancellation are in ctx.
func pass(ctx context.Context, runtime *grpc.ClientConn, method string, caller grpc.ServerStream) error {
	// What still runs of the call when the runtime has ended it ends as well.
	ctx, cancel := context.WithCancelCause(outgoing(ctx, caller))
	defer cancel(nil)
	callee, err := runtime.NewStream(ctx, anyStream, method)
	if err != nil {
		return err
	}
	go requests(caller, callee, cancel)
	err = responses(caller, callee)
	if broken, ok := status.FromError(context.Cause(ctx)); ok && broken != nil {
		return broken.Err()
	}
	return err
}

// requests of the caller, until it has no more. Whatever ends the call otherwise is told
// by responses.
func requests(caller grpc.ServerStream, callee grpc.ClientStream, cancel context.CancelCauseFunc) {
	for {
		var message []byte
		err := caller.RecvMsg(&message)
		if errors.Is(err, io.EOF) {
			_ = callee.CloseSend() // never fails
			return
		}
		if err != nil {
			cancel(err) // the caller is gone, or what it sends cannot be read
			return
		}
		if callee.SendMsg(&message) != nil {
			return // the runtime has ended the call
		}
	}
}

// responses of the runtime, until it ends the call.
func responses(caller grpc.ServerStream, callee grpc.ClientStream) error {
	// Headers go on when they come, which may be long before the first message.
	header, _ := callee.Header() // what is wrong is told by RecvMsg
	if header != nil {
		if err := caller.SendHeader(incoming(header)); err != nil {
			return err
		}
	}
	for {
		var message []byte
		if err := callee.RecvMsg(&message); err != nil {
			caller.SetTrailer(callee.Trailer())
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := caller.SendMsg(&message); err != nil {
			return err
		}
	}
}

// outgoing is ctx with the caller's metadata for the runtime.
func outgoing(ctx context.Context, caller grpc.ServerStream) context.Context {
	received, _ := metadata.FromIncomingContext(caller.Context())
	return metadata.NewOutgoingContext(ctx, without(received, ":authority", "content-type", "user-agent", "grpc-accept-encoding"))
}

// incoming is the runtime's header metadata without what belongs to the connection.
func incoming(header metadata.MD) metadata.MD { return without(header, "content-type") }

func without(all metadata.MD, names ...string) metadata.MD {
	left := metadata.MD{}
	for name, values := range all {
		if !slices.Contains(names, name) {
			left[name] = values
		}
	}
	return left
}
