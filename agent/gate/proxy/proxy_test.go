package proxy

import (
	"bytes"
	"context"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// A caller must not be able to tell the proxy from the runtime.
func TestCallsPassUnchanged(t *testing.T) {
	tests := map[string]struct {
		method   string
		requests [][]byte
		options  []grpc.CallOption
		want     codes.Code
	}{
		"a unary call with headers and trailers":                {method: "/test/Unary", requests: [][]byte{[]byte("\x00\xffx")}},
		"a unary call that is compressed":                       {method: "/test/Unary", requests: [][]byte{bytes.Repeat([]byte("y"), 1000)}, options: []grpc.CallOption{grpc.UseCompressor(gzip.Name)}},
		"a unary call without a request":                        {method: "/test/Unary", want: codes.Unknown},
		"empty messages":                                        {method: "/test/Empty", requests: [][]byte{{}}},
		"an error with headers, trailers and details":           {method: "/test/Fails", requests: [][]byte{{1}}, want: codes.ResourceExhausted},
		"an error and nothing else":                             {method: "/test/FailsBare", requests: [][]byte{{1}}, want: codes.NotFound},
		"an error whose code no one knows":                      {method: "/test/FailsWithItsOwnCode", requests: [][]byte{{1}}, want: 77},
		"a method that no one knows":                            {method: "/runtime.v1.RuntimeService/FromTheFuture", requests: [][]byte{{1}}, want: codes.Unimplemented},
		"a service that no one knows":                           {method: "/runtime.v9.Other/Do", requests: [][]byte{{1}}, want: codes.Unimplemented},
		"a stream of the runtime's that ends with an error":     {method: "/test/Server", requests: [][]byte{{1}}, want: codes.Aborted},
		"a stream of the caller's":                              {method: "/test/Client", requests: [][]byte{{1}, {2, 3}, {}, {4}}},
		"a stream both ways":                                    {method: "/test/Echo", requests: [][]byte{[]byte("a"), []byte("b"), []byte("c")}},
		"a stream both ways without a message":                  {method: "/test/Echo"},
		"a response as large as kubelet takes":                  {method: "/test/Big", requests: [][]byte{{1}}},
		"a request as large as the runtime takes":               {method: "/test/Client", requests: [][]byte{bytes.Repeat([]byte("z"), 16<<20)}},
		"a request larger than the runtime takes":               {method: "/test/Client", requests: [][]byte{bytes.Repeat([]byte("z"), 16<<20+1)}, want: codes.ResourceExhausted},
		"a caller that takes less than the runtime has to send": {method: "/test/Big", requests: [][]byte{{1}}, options: []grpc.CallOption{grpc.MaxCallRecvMsgSize(1 << 20)}, want: codes.ResourceExhausted},
	}
	runtime := startRuntime(t, filepath.Join(t.TempDir(), "r.sock"))
	direct := dial(t, runtime.path)
	// The same holds for a call that a handler lets pass; a handler has unary ones only.
	handlers := map[string]Handler{}
	for _, method := range []string{"/test/Unary", "/test/Empty", "/test/Fails", "/test/FailsBare", "/test/FailsWithItsOwnCode", "/test/Big", "/runtime.v1.RuntimeService/FromTheFuture"} {
		handlers[method] = func(ctx context.Context, request []byte, forward Forward) ([]byte, error) {
			return forward(ctx, request)
		}
	}
	proxies := map[string]*grpc.ClientConn{
		"passed":      dial(t, startProxy(t, runtime.path, nil).socket),
		"intercepted": dial(t, startProxy(t, runtime.path, handlers).socket),
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ctx := metadata.AppendToOutgoingContext(t.Context(), "m", "1", "m", "2", "m-bin", "\x00\xff", "traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
			want := call(ctx, t, direct, tc.method, tc.requests, tc.options...)
			wantMetadata := runtime.metadata()
			if want.Code != tc.want {
				t.Fatalf("without the proxy: %v %q, want %v", want.Code, want.Message, tc.want)
			}
			for how, conn := range proxies {
				got := call(ctx, t, conn, tc.method, tc.requests, tc.options...)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s, -without +with the proxy:\n%.2000s", how, diff)
				}
				if diff := cmp.Diff(wantMetadata, runtime.metadata()); diff != "" {
					t.Errorf("%s, metadata that the runtime hears, -without +with the proxy:\n%s", how, diff)
				}
			}
		})
	}
}

func TestHeadersDoNotWaitForAMessage(t *testing.T) {
	runtime := startRuntime(t, filepath.Join(t.TempDir(), "r.sock"))
	conn := dial(t, startProxy(t, runtime.path, nil).socket)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	stream, err := conn.NewStream(ctx, anyStream, "/test/HeaderThenNothing")
	if err != nil {
		t.Fatal(err)
	}
	header, err := stream.Header()
	if err != nil || !slices.Equal(header["h"], []string{"1"}) {
		t.Errorf("header %v, error %v", header, err)
	}
}

func TestADialogueIsNotHeldBack(t *testing.T) {
	runtime := startRuntime(t, filepath.Join(t.TempDir(), "r.sock"))
	conn := dial(t, startProxy(t, runtime.path, nil).socket)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	stream, err := conn.NewStream(ctx, anyStream, "/test/Echo")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		sent := []byte{byte(i)}
		var got []byte
		if err := stream.SendMsg(&sent); err != nil {
			t.Fatal(err)
		}
		if err := stream.RecvMsg(&got); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(sent, got) {
			t.Fatalf("got %v, want %v", got, sent)
		}
	}
}

func TestTheRuntimeSeesDeadlineAndCancellation(t *testing.T) {
	for name, handlers := range map[string]map[string]Handler{
		"a call that passes": nil,
		"a call with a handler": {"/test/Hangs": func(ctx context.Context, request []byte, forward Forward) ([]byte, error) {
			return forward(ctx, request)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			runtime := startRuntime(t, filepath.Join(t.TempDir(), "r.sock"))
			conn := dial(t, startProxy(t, runtime.path, handlers).socket)
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if _, err := unary(ctx, conn, "/test/Hangs", nil); status.Code(err) != codes.DeadlineExceeded {
				t.Errorf("error %v, want that the deadline is over", err)
			}
			<-runtime.ended
			if limit := runtime.limit(); limit <= 0 || limit > 300*time.Millisecond {
				t.Errorf("the runtime was given %v, want what was left of 300ms", limit)
			}
			ctx, cancel = context.WithCancel(t.Context())
			time.AfterFunc(100*time.Millisecond, cancel)
			if _, err := unary(ctx, conn, "/test/Hangs", nil); status.Code(err) != codes.Canceled {
				t.Errorf("error %v, want cancelled", err)
			}
			select {
			case <-runtime.ended:
			case <-time.After(10 * time.Second):
				t.Error("the runtime goes on with a call that was cancelled")
			}
		})
	}
}

func TestARuntimeThatIsGoneOrComesBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.sock")
	direct := dial(t, path)
	conn := dial(t, startProxy(t, path, nil).socket)
	_, want := unary(t.Context(), direct, "/test/Unary", nil)
	_, got := unary(t.Context(), conn, "/test/Unary", nil)
	if status.Code(want) != codes.Unavailable || status.Code(got) != codes.Unavailable {
		t.Errorf("no runtime: with the proxy %v, without %v", got, want)
	}
	runtime := startRuntime(t, path)
	for range 3 {
		eventually(t, "the runtime is found again", func() bool {
			_, err := unary(t.Context(), conn, "/test/Unary", nil)
			return err == nil
		})
		broken := make(chan error, 1)
		go func() {
			_, err := unary(t.Context(), conn, "/test/Hangs", nil)
			broken <- err
		}()
		eventually(t, "the call is in progress", func() bool { return runtime.calls("/test/Hangs") > 0 })
		runtime.server.Stop()
		if err := <-broken; status.Code(err) != codes.Unavailable && status.Code(err) != codes.Canceled {
			t.Errorf("a call in progress while the runtime dies: %v", err)
		}
		if state := conn.GetState(); state != connectivity.Ready {
			t.Errorf("the caller's connection is %v", state)
		}
		runtime = startRuntime(t, path)
	}
}

// A runtime whose process is stopped takes connections and answers nothing.
func TestARuntimeThatHangs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	for name, conn := range map[string]*grpc.ClientConn{"without the proxy": dial(t, path), "with it": dial(t, startProxy(t, path, nil).socket)} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		if _, err := unary(ctx, conn, "/test/Unary", nil); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
}

func TestBrokenCallersHoldNoOneUp(t *testing.T) {
	runtime := startRuntime(t, filepath.Join(t.TempDir(), "r.sock"))
	s := startProxy(t, runtime.path, nil)
	for _, first := range []string{"", "GET / HTTP/1.1\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x00\x01\x02"} {
		conn, err := net.Dial("unix", s.socket)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if _, err := conn.Write([]byte(first)); err != nil {
			t.Fatal(err)
		}
	}
	// One that reads nothing of a long stream.
	deaf := dial(t, s.socket)
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := deaf.NewStream(ctx, anyStream, "/test/Big"); err != nil {
		t.Fatal(err)
	}
	conn := dial(t, s.socket)
	if got, err := unary(t.Context(), conn, "/test/Unary", []byte("x")); err != nil || string(got) != "re x" {
		t.Errorf("got %q, %v", got, err)
	}
	cancel()
}

func TestTheEndOfTheProxy(t *testing.T) {
	runtime := startRuntime(t, filepath.Join(t.TempDir(), "r.sock"))
	s := startProxy(t, runtime.path, nil)
	conn := dial(t, s.socket)
	watching, err := conn.NewStream(t.Context(), anyStream, events)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watching.Header(); err != nil {
		t.Fatal(err)
	}
	slow := make(chan error, 1)
	go func() {
		_, err := unary(t.Context(), conn, "/test/Slow", nil)
		slow <- err
	}()
	eventually(t, "the call is in progress", func() bool { return runtime.calls("/test/Slow") > 0 })
	began := time.Now()
	s.stop()
	if took := time.Since(began); took >= drain {
		t.Errorf("it took %v, want the time of the call in progress", took)
	}
	if err := <-slow; err != nil {
		t.Errorf("a call in progress: %v", err)
	}
	var message []byte
	if err := watching.RecvMsg(&message); err == nil {
		t.Error("a stream without an end goes on")
	}
}

func TestTheEndOfTheProxyIsBounded(t *testing.T) {
	t.Parallel() // it waits
	runtime := startRuntime(t, filepath.Join(t.TempDir(), "r.sock"))
	s := startProxy(t, runtime.path, nil)
	conn := dial(t, s.socket)
	go func() { _, _ = unary(t.Context(), conn, "/test/Hangs", nil) }()
	eventually(t, "the call is in progress", func() bool { return runtime.calls("/test/Hangs") > 0 })
	s.stop()
	select {
	case <-runtime.ended:
	case <-time.After(10 * time.Second):
		t.Error("the runtime goes on with a call whose caller is gone")
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 1000 {
		if holds() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("not within 10 s: %s", what)
}
