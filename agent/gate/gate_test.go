package gate

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"rekindle.edge/agent/gate/proxy"
)

// fakeRuntime makes sandboxes.
type fakeRuntime struct {
	runtimeapi.UnimplementedRuntimeServiceServer
}

func (fakeRuntime) RunPodSandbox(context.Context, *runtimeapi.RunPodSandboxRequest) (*runtimeapi.RunPodSandboxResponse, error) {
	return &runtimeapi.RunPodSandboxResponse{PodSandboxId: "made"}, nil
}

func (fakeRuntime) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{RuntimeApiVersion: "v1"}, nil
}

// newGate is a gate that serves in front of a fake runtime.
func newGate(t *testing.T, runtime runtimeapi.RuntimeServiceServer) (*Gate, runtimeapi.RuntimeServiceClient) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "runtime.sock")
	behind, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(server, runtime)
	go func() { _ = server.Serve(behind) }()
	t.Cleanup(server.Stop)

	g := New(Options{Log: logr.Discard(), Socket: filepath.Join(dir, "run/cri.sock"), Endpoint: "unix://" + path})
	listener, err := Listen(t.Context(), nil, g.Socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	conn, err := grpc.NewClient("unix:"+g.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return g, runtimeapi.NewRuntimeServiceClient(conn)
}

func TestPlug(t *testing.T) {
	refuse := func(context.Context, []byte, proxy.Forward) ([]byte, error) {
		return nil, status.Error(codes.Unavailable, "network is not ready")
	}
	on, off := func() bool { return true }, func() bool { return false }
	tests := map[string]struct {
		plug func(*Gate)
		want codes.Code
	}{
		"nothing is plugged":         {plug: func(*Gate) {}},
		"another call has a handler": {plug: func(g *Gate) { g.Plug(Handlers{StopPodSandbox: refuse}, on) }},
		"the handler answers":        {plug: func(g *Gate) { g.Plug(Handlers{RunPodSandbox: refuse}, on) }, want: codes.Unavailable},
		"the handler is not active":  {plug: func(g *Gate) { g.Plug(Handlers{RunPodSandbox: refuse}, off) }},
		"what decides on it panics":  {plug: func(g *Gate) { g.Plug(Handlers{RunPodSandbox: refuse}, func() bool { panic("broken") }) }},
		"the last that was plugged is the one": {plug: func(g *Gate) {
			g.Plug(Handlers{RunPodSandbox: refuse}, on)
			g.Plug(Handlers{RunPodSandbox: pass}, on)
		}},
		"another call gets a handler later": {plug: func(g *Gate) {
			g.Plug(Handlers{RunPodSandbox: refuse}, on)
			g.Plug(Handlers{StopPodSandbox: refuse}, off)
		}, want: codes.Unavailable},
		"the handler panics and the call passes": {plug: func(g *Gate) {
			g.Plug(Handlers{RunPodSandbox: func(context.Context, []byte, proxy.Forward) ([]byte, error) { panic("broken") }}, on)
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			g, client := newGate(t, fakeRuntime{})
			tc.plug(g)
			response, err := client.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{})
			if status.Code(err) != tc.want {
				t.Errorf("error %v, want %v", err, tc.want)
			}
			if tc.want == codes.OK && response.GetPodSandboxId() != "made" {
				t.Errorf("response %v", response)
			}
			if err := g.Answers(t.Context()); err != nil {
				t.Error(err)
			}
			if err := g.Check(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestListen(t *testing.T) {
	path := func(t *testing.T) string { t.Helper(); return filepath.Join(t.TempDir(), "run/cri.sock") }
	given := func(t *testing.T, path string) net.Listener {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		listener, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		listener.(*net.UnixListener).SetUnlinkOnClose(false)
		t.Cleanup(func() { _ = listener.Close() })
		return listener
	}
	tests := map[string]struct {
		given func(t *testing.T, path string) []net.Listener
		// taken says that the socket that was given is used.
		taken bool
	}{
		"systemd gives the socket":          {given: func(t *testing.T, path string) []net.Listener { return []net.Listener{given(t, path)} }, taken: true},
		"systemd gives nothing":             {given: func(*testing.T, string) []net.Listener { return nil }},
		"systemd gives another one":         {given: func(t *testing.T, path string) []net.Listener { return []net.Listener{given(t, path+"2")} }},
		"an agent that was killed left one": {given: func(t *testing.T, path string) []net.Listener { _ = given(t, path).Close(); return nil }},
		"the one that systemd gives was removed": {given: func(t *testing.T, path string) []net.Listener {
			listener := given(t, path)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			return []net.Listener{listener}
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			path := path(t)
			sockets := tc.given(t, path)
			listener, err := Listen(t.Context(), sockets, path)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = listener.Close() }()
			if taken := len(sockets) > 0 && listener == sockets[0]; taken != tc.taken {
				t.Errorf("taken: %v", taken)
			}
			conn, err := net.Dial("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.Close()
			if info, err := os.Stat(path); !tc.taken && (err != nil || info.Mode().Perm() != 0o600) {
				t.Errorf("mode %v, %v", info.Mode(), err)
			}
		})
	}
}
