package cri

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

type fakeRuntime struct {
	runtimeapi.UnimplementedRuntimeServiceServer
}

func (fakeRuntime) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{RuntimeName: "fake"}, nil
}

// serve is a runtime on a socket, until stop is called.
func serve(t *testing.T, socket string) (stop func()) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(server, fakeRuntime{})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return server.Stop
}

func client(t *testing.T, endpoint string) *Client {
	c := New(endpoint)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func ask(ctx context.Context, c *Client) error {
	_, err := c.Version(ctx, &runtimeapi.VersionRequest{})
	return err
}

// answersWithin waits for an answer, without another call that would have the client dial.
func answersWithin(t *testing.T, c *Client, bound time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	if _, err := c.Version(ctx, &runtimeapi.VersionRequest{}, grpc.WaitForReady(true)); err != nil {
		t.Errorf("a runtime that is there is not reached within %s: %v", bound, err)
	}
}

// comesBack is longer than the longest pause, and shorter than what is left of gRPC's own
// second one when a runtime comes 1.3 s late.
const comesBack = 600 * time.Millisecond

func TestARuntimeThatComesLateIsReachedSoon(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "cri.sock")
	c := client(t, "unix://"+socket)
	if err := ask(t.Context(), c); status.Code(err) != codes.Unavailable {
		t.Fatalf("%v from a runtime that is not there", err)
	}
	time.Sleep(1300 * time.Millisecond)
	serve(t, socket)
	answersWithin(t, c, comesBack)
}

func TestARuntimeThatIsRestartedIsReachedAgain(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "cri.sock")
	c := client(t, "unix://"+socket)
	stop := serve(t, socket)
	answersWithin(t, c, 5*time.Second)
	stop()
	if err := ask(t.Context(), c); status.Code(err) != codes.Unavailable {
		t.Fatalf("%v from a runtime that has stopped", err)
	}
	serve(t, socket)
	answersWithin(t, c, comesBack)
}

func TestErrors(t *testing.T) {
	t.Parallel()
	missing := "unix://" + filepath.Join(t.TempDir(), "none.sock")
	cases := map[string]struct {
		endpoint string
		want     []string
	}{
		"nobody answers":          {endpoint: missing, want: []string{missing, "criEndpoint", "no such file"}},
		"the endpoint is no name": {endpoint: "unix:///%zz", want: []string{"unix:///%zz", "criEndpoint"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := client(t, tc.endpoint)
			err := ask(t.Context(), c)
			if err == nil {
				t.Fatal("no error")
			}
			_, streamErr := c.GetContainerEvents(t.Context(), &runtimeapi.GetEventsRequest{})
			if streamErr == nil {
				t.Error("no error of a stream")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}
