package snapshot

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"rekindle.edge/agent/cri"
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
	client := cri.New("unix://" + path)
	defer func() { _ = client.Close() }()
	sandboxes := Runtime(client)
	if _, err := sandboxes(context.Background()); err == nil {
		t.Error("no error from a runtime that is not there")
	}
	listener, err := net.Listen("unix", path)
	must(t, err)
	server := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(server, fakeRuntime{})
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	var got []Sandbox
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if got, err = sandboxes(context.Background()); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]Sandbox{{UID: "a"}, {UID: "f", Static: true}, {UID: "u"}}, got); diff != "" {
		t.Errorf("sandboxes (-want +got):\n%s", diff)
	}
}
