package snapshot

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

type fakeRuntime struct {
	runtimeapi.UnimplementedRuntimeServiceServer
}

func (fakeRuntime) ListPodSandbox(context.Context, *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	sandbox := func(uid, source string) *runtimeapi.PodSandbox {
		return &runtimeapi.PodSandbox{
			Labels: map[string]string{labelPodUID: uid}, Annotations: map[string]string{annotationSource: source},
			State: runtimeapi.PodSandboxState_SANDBOX_NOTREADY,
		}
	}
	return &runtimeapi.ListPodSandboxResponse{Items: []*runtimeapi.PodSandbox{
		sandbox("a", "api"), sandbox("f", "file"), sandbox("u", ""), {Id: "nobody's"},
	}}, nil
}

func TestRuntime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cri.sock")
	sandboxes := Runtime("unix://" + path)
	if _, err := sandboxes(context.Background()); err == nil {
		t.Error("no error from a runtime that is not there")
	}
	listener, err := net.Listen("unix", path)
	must(t, err)
	server := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(server, fakeRuntime{})
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	got, err := sandboxes(context.Background())
	must(t, err)
	if diff := cmp.Diff([]Sandbox{{UID: "a"}, {UID: "f", Static: true}, {UID: "u"}}, got); diff != "" {
		t.Errorf("sandboxes (-want +got):\n%s", diff)
	}
}
