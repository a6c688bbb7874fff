package proxy

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// runtime37 answers Version.
type runtime37 struct {
	runtimeapi.UnimplementedRuntimeServiceServer
}

func (runtime37) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{RuntimeApiVersion: "v1"}, nil
}

func TestCheck(t *testing.T) {
	listen := func(t *testing.T) (string, net.Listener) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "s.sock")
		listener, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		return path, listener
	}
	answering := func(t *testing.T) string {
		t.Helper()
		path, listener := listen(t)
		server := grpc.NewServer()
		runtimeapi.RegisterRuntimeServiceServer(server, runtime37{})
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(server.Stop)
		return path
	}
	hanging := func(t *testing.T) string {
		t.Helper()
		path, _ := listen(t)
		return path
	}
	missing := func(t *testing.T) string { t.Helper(); return filepath.Join(t.TempDir(), "none") }
	proxied := func(t *testing.T, runtime string) string { t.Helper(); return startProxy(t, runtime, nil).socket }
	tests := map[string]struct {
		runtime func(t *testing.T) string
		proxy   func(t *testing.T, runtime string) string
		broken  bool
	}{
		"all answer":                         {runtime: answering, proxy: proxied},
		"the runtime is not there":           {runtime: missing, proxy: proxied},
		"the runtime hangs":                  {runtime: hanging, proxy: proxied},
		"the proxy and the runtime hang":     {runtime: hanging, proxy: func(t *testing.T, _ string) string { t.Helper(); return hanging(t) }, broken: true},
		"the proxy hangs":                    {runtime: answering, proxy: func(t *testing.T, _ string) string { t.Helper(); return hanging(t) }, broken: true},
		"the proxy is gone":                  {runtime: answering, proxy: func(t *testing.T, _ string) string { t.Helper(); return missing(t) }, broken: true},
		"the proxy asks on the wrong socket": {runtime: answering, proxy: func(t *testing.T, _ string) string { t.Helper(); return proxied(t, missing(t)) }, broken: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits
			runtime := tc.runtime(t)
			if err := Check(t.Context(), tc.proxy(t, runtime), runtime); (err != nil) != tc.broken {
				t.Errorf("error %v, want one: %v", err, tc.broken)
			}
		})
	}
}
