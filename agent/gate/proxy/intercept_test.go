package proxy

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestHandler(t *testing.T) {
	const method = "/test/Unary"
	tests := map[string]struct {
		handler   Handler
		want      string
		wantError codes.Code
		wantCalls int
		// wantTrailer is whether the runtime's trailer comes.
		wantTrailer bool
	}{
		"lets the call pass": {
			handler: func(ctx context.Context, request []byte, forward Forward) ([]byte, error) {
				return forward(ctx, request)
			},
			want: "re x", wantCalls: 1, wantTrailer: true,
		},
		"changes request and response": {
			handler: func(ctx context.Context, request []byte, forward Forward) ([]byte, error) {
				response, err := forward(ctx, append(request, 'y'))
				return append(response, 'z'), err
			},
			want: "re xyz", wantCalls: 1, wantTrailer: true,
		},
		"answers by itself": {
			handler: func(context.Context, []byte, Forward) ([]byte, error) { return []byte("mine"), nil },
			want:    "mine",
		},
		"answers with an error": {
			handler: func(context.Context, []byte, Forward) ([]byte, error) {
				return nil, status.Error(codes.Unavailable, "network is not ready")
			},
			wantError: codes.Unavailable,
		},
		"forwards twice and gives the second answer": {
			handler: func(ctx context.Context, request []byte, forward Forward) ([]byte, error) {
				if _, err := forward(ctx, []byte("first")); err != nil {
					return nil, err
				}
				return forward(ctx, request)
			},
			want: "re x", wantCalls: 2, wantTrailer: true,
		},
		"panics before it has forwarded, and the call passes": {
			handler: func(context.Context, []byte, Forward) ([]byte, error) { panic("broken") },
			want:    "re x", wantCalls: 1, wantTrailer: true,
		},
		"panics after it has forwarded, and the call is not made twice": {
			handler: func(ctx context.Context, request []byte, forward Forward) ([]byte, error) {
				_, _ = forward(ctx, request)
				panic("broken")
			},
			want: "re x", wantCalls: 1, wantTrailer: true,
		},
		"gives up before the runtime has answered": {
			handler: func(ctx context.Context, request []byte, forward Forward) ([]byte, error) {
				ctx, cancel := context.WithCancel(ctx)
				cancel()
				return forward(ctx, request)
			},
			wantError: codes.Canceled,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			runtime := startRuntime(t, filepath.Join(t.TempDir(), "r.sock"))
			conn := dial(t, startProxy(t, runtime.path, map[string]Handler{method: tc.handler}).socket)
			got := call(t.Context(), t, conn, method, [][]byte{[]byte("x")})
			var want []string
			if tc.wantError == codes.OK {
				want = []string{tc.want}
			}
			if diff := cmp.Diff(want, got.Messages); diff != "" {
				t.Error(diff)
			}
			if got.Code != tc.wantError {
				t.Errorf("code %v, want %v", got.Code, tc.wantError)
			}
			if calls := runtime.calls(method); calls != tc.wantCalls {
				t.Errorf("%d calls reach the runtime, want %d", calls, tc.wantCalls)
			}
			if came := len(got.Trailer["t"]) == 1 && len(got.Header["h"]) == 2; came != tc.wantTrailer {
				t.Errorf("header %v, trailer %v", got.Header, got.Trailer)
			}
		})
	}
}
