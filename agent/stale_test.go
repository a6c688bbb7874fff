package main

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"rekindle.edge/agent/cri"
	"rekindle.edge/agent/snapshot"
)

// oldRuntime has one sandbox of an earlier boot, which is on the node's network.
type oldRuntime struct {
	runtimeapi.UnimplementedRuntimeServiceServer
}

func (oldRuntime) ListPodSandbox(context.Context, *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	return &runtimeapi.ListPodSandboxResponse{Items: []*runtimeapi.PodSandbox{{Id: "old", State: runtimeapi.PodSandboxState_SANDBOX_NOTREADY}}}, nil
}

func (oldRuntime) PodSandboxStatus(context.Context, *runtimeapi.PodSandboxStatusRequest) (*runtimeapi.PodSandboxStatusResponse, error) {
	return &runtimeapi.PodSandboxStatusResponse{Status: &runtimeapi.PodSandboxStatus{Id: "old", State: runtimeapi.PodSandboxState_SANDBOX_NOTREADY}}, nil
}

func (oldRuntime) Status(context.Context, *runtimeapi.StatusRequest) (*runtimeapi.StatusResponse, error) {
	network := `{"Networks":[{"Config":{"Name":"pods","Plugins":[{"Source":"{\"type\":\"bridge\",\"ipam\":{\"type\":\"host-local\",\"subnet\":\"192.0.2.0/24\"}}"}]}}]}`
	return &runtimeapi.StatusResponse{Info: map[string]string{"cniconfig": network}}, nil
}

func TestARuntimeThatIsUpLongAfterTheAgentIsSeenAtOnce(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "runtime.sock")
	client := cri.New("unix://" + socket)
	defer func() { _ = client.Close() }()
	old := newSandboxes(logr.Discard(), client, func() (string, error) { return "boot-1", nil })
	old.Dir = t.TempDir()
	old.recovery.Store(&recovery{over: make(chan struct{}), expected: func() int { return 1 }})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		old.Run(ctx)
	}()
	defer func() {
		cancel()
		<-ended
	}()
	time.Sleep(3200 * time.Millisecond) // by default the pause is 2 s by now

	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(server, oldRuntime{})
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	time.Sleep(400 * time.Millisecond)

	request, err := proto.Marshal(&runtimeapi.StopPodSandboxRequest{PodSandboxId: "old"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = old.Stop(t.Context(), request, func(context.Context, []byte) ([]byte, error) {
		t.Error("the stop was not deferred")
		return nil, nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAddresses(t *testing.T) {
	store, err := snapshot.Open(t.TempDir(), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	pod := func(i int, rest string) snapshot.Object {
		name := fmt.Sprintf("pod-%d", i)
		return snapshot.Object{Namespace: "default", Name: name, UID: "uid-x", ResourceVersion: fmt.Sprint(i + 1),
			Raw: []byte(fmt.Sprintf(`{"metadata":{"namespace":"default","name":%q,"uid":"uid-x","resourceVersion":"%d"},%s}`, name, i+1, rest))}
	}
	scope := snapshot.Scope{Resource: snapshot.Pods}
	count := addresses(store.Objects())
	if err := store.Objects().Sync(scope, "10", []snapshot.Object{
		pod(0, `"spec":{}`),
		pod(1, `"spec":{"hostNetwork":true}`),
		pod(2, `"spec":{},"status":{"phase":"Succeeded"}`),
		pod(3, `"spec":{},"status":{"phase":"Pending"}`),
	}); err != nil {
		t.Fatal(err)
	}
	if got := count(); got != 2 {
		t.Errorf("%d pods want an address, want 2", got)
	}
	if err := store.Objects().Sync(scope, "11", []snapshot.Object{pod(0, `"spec":{}`)}); err != nil {
		t.Fatal(err)
	}
	if got := count(); got != 1 {
		t.Errorf("%d pods want an address after most have gone, want 1", got)
	}
}
