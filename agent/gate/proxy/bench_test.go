package proxy

import (
	"context"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
)

// BenchmarkCall is the time of a unary call without and with the proxy.
func BenchmarkCall(b *testing.B) {
	runtime := startRuntime(b, filepath.Join(b.TempDir(), "r.sock"))
	handlers := map[string]Handler{"/test/Unary": func(ctx context.Context, request []byte, forward Forward) ([]byte, error) {
		return forward(ctx, request)
	}}
	for _, tc := range []struct {
		name string
		conn *grpc.ClientConn
	}{
		{"without", dial(b, runtime.path)},
		{"passed", dial(b, startProxy(b, runtime.path, nil).socket)},
		{"intercepted", dial(b, startProxy(b, runtime.path, handlers).socket)},
	} {
		b.Run(tc.name, func(b *testing.B) {
			request := make([]byte, 2048)
			for b.Loop() {
				if _, err := unary(b.Context(), tc.conn, "/test/Unary", request); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
