package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// runtime is a fake container runtime.
type runtime struct {
	path   string
	server *grpc.Server

	mu    sync.Mutex
	seen  map[string]int // calls by method
	heard metadata.MD    // metadata of the last call
	left  time.Duration  // time that it was given

	ended chan struct{} // has one for each call that hung and was ended
}

func startRuntime(t testing.TB, path string) *runtime {
	t.Helper()
	r := &runtime{path: path, seen: map[string]int{}, ended: make(chan struct{}, 16)}
	r.start(t)
	return r
}

func (r *runtime) start(t testing.TB) {
	t.Helper()
	listener, err := net.Listen("unix", r.path)
	if err != nil {
		t.Fatal(err)
	}
	r.server = grpc.NewServer(grpc.ForceServerCodecV2(raw{}), grpc.UnknownServiceHandler(r.handle),
		grpc.MaxRecvMsgSize(16<<20), grpc.MaxSendMsgSize(math.MaxInt32))
	go func() { _ = r.server.Serve(listener) }()
	t.Cleanup(r.server.Stop)
}

func (r *runtime) calls(method string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[method]
}

func (r *runtime) metadata() metadata.MD {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.heard
}

func (r *runtime) limit() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left
}

func (r *runtime) handle(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	received, _ := metadata.FromIncomingContext(stream.Context())
	r.mu.Lock()
	r.seen[method]++
	r.heard = received
	if deadline, ok := stream.Context().Deadline(); ok {
		r.left = time.Until(deadline)
	}
	r.mu.Unlock()
	switch method {
	case "/test/Unary":
		var message []byte
		if err := stream.RecvMsg(&message); err != nil {
			return err
		}
		_ = stream.SetHeader(metadata.Pairs("h", "1", "h", "2", "h-bin", "\x00\xff"))
		stream.SetTrailer(metadata.Pairs("t", "1", "t-bin", "\x00\xff"))
		message = append([]byte("re "), message...)
		return stream.SendMsg(&message)
	case "/test/Empty":
		return stream.SendMsg(&[]byte{})
	case "/test/Fails":
		_ = stream.SetHeader(metadata.Pairs("h", "1"))
		stream.SetTrailer(metadata.Pairs("t", "1"))
		failure, err := status.New(codes.ResourceExhausted, "no space: 100%\nä").WithDetails(wrapperspb.String("why"))
		if err != nil {
			return err
		}
		return failure.Err()
	case "/test/FailsBare":
		return status.Error(codes.NotFound, "no such sandbox")
	case "/test/FailsWithItsOwnCode":
		return status.Error(codes.Code(77), "own")
	case "/test/Server":
		_ = stream.SetHeader(metadata.Pairs("h", "1"))
		for i := range 1000 {
			if err := stream.SendMsg(&[]byte{byte(i), byte(i >> 8)}); err != nil {
				return err
			}
		}
		stream.SetTrailer(metadata.Pairs("t", "1"))
		return status.Error(codes.Aborted, "after a thousand")
	case "/test/Client":
		total := 0
		for {
			var message []byte
			if err := stream.RecvMsg(&message); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return err
			}
			total += len(message)
		}
		return stream.SendMsg(&[]byte{byte(total)})
	case "/test/Echo":
		for {
			var message []byte
			if err := stream.RecvMsg(&message); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			if err := stream.SendMsg(&message); err != nil {
				return err
			}
		}
	case "/test/HeaderThenNothing", events:
		if err := stream.SendHeader(metadata.Pairs("h", "1")); err != nil {
			return err
		}
		<-stream.Context().Done()
		r.ended <- struct{}{}
		return status.FromContextError(stream.Context().Err()).Err()
	case "/test/Hangs":
		<-stream.Context().Done()
		r.ended <- struct{}{}
		return status.FromContextError(stream.Context().Err()).Err()
	case "/test/Slow":
		time.Sleep(300 * time.Millisecond)
		return stream.SendMsg(&[]byte{1})
	case "/test/Big":
		big := bytes.Repeat([]byte("x"), 16<<20-64)
		return stream.SendMsg(&big)
	}
	return status.Errorf(codes.Unimplemented, "unknown method %s", method)
}

// serving is a proxy that serves.
type serving struct {
	socket string
	stop   func() // and wait until it has ended
}

func startProxy(t testing.TB, runtime string, intercept map[string]Handler) serving {
	t.Helper()
	s := serving{socket: filepath.Join(t.TempDir(), "cri.sock")}
	listener, err := net.Listen("unix", s.socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- (&Proxy{Runtime: runtime, Intercept: intercept, Log: logr.Discard()}).Serve(ctx, listener)
	}()
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(s.stop)
	return s
}

func dial(t testing.TB, socket string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"),
		// As kubelet does.
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{}), grpc.MaxCallRecvMsgSize(16<<20)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// unary calls once and gives the response.
func unary(ctx context.Context, conn *grpc.ClientConn, method string, request []byte) ([]byte, error) {
	var response []byte
	err := conn.Invoke(ctx, method, &request, &response)
	return response, err
}

// outcome of a call, as its caller sees it.
type outcome struct {
	Header, Trailer metadata.MD
	Messages        []string
	Code            codes.Code
	Message         string
	Details         []string
}

// call sends all requests, then receives until the end.
func call(ctx context.Context, t *testing.T, conn *grpc.ClientConn, method string, requests [][]byte, options ...grpc.CallOption) outcome {
	t.Helper()
	var seen outcome
	stream, err := conn.NewStream(ctx, anyStream, method, options...)
	if err != nil {
		seen.Code, seen.Message = status.Code(err), status.Convert(err).Message()
		return seen
	}
	for _, request := range requests {
		if stream.SendMsg(&request) != nil {
			break
		}
	}
	_ = stream.CloseSend()
	for err == nil {
		var message []byte
		if err = stream.RecvMsg(&message); err == nil {
			seen.Messages = append(seen.Messages, string(message))
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	seen.Header, _ = stream.Header()
	seen.Trailer = stream.Trailer()
	failure := status.Convert(err)
	seen.Code, seen.Message = failure.Code(), failure.Message()
	for _, detail := range failure.Proto().GetDetails() {
		seen.Details = append(seen.Details, detail.String())
	}
	return seen
}
