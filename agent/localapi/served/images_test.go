package served

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"rekindle.edge/agent/cri"
	"rekindle.edge/agent/snapshot"
)

// fakeRuntime has images and containers.
type fakeRuntime struct {
	runtimeapi.UnimplementedImageServiceServer
	runtimeapi.UnimplementedRuntimeServiceServer
}

func (fakeRuntime) ImageStatus(_ context.Context, r *runtimeapi.ImageStatusRequest) (*runtimeapi.ImageStatusResponse, error) {
	if r.GetImage().GetImage() == "away" {
		return &runtimeapi.ImageStatusResponse{}, nil
	}
	return &runtimeapi.ImageStatusResponse{Image: &runtimeapi.Image{Id: "sha256:1"}}, nil
}

func (fakeRuntime) ListContainers(context.Context, *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	container := func(pod, name, image string) *runtimeapi.Container {
		return &runtimeapi.Container{
			Metadata: &runtimeapi.ContainerMetadata{Name: name}, Labels: map[string]string{podLabel: pod},
			Image: &runtimeapi.ImageSpec{Image: "sha256:1", UserSpecifiedImage: image},
		}
	}
	return &runtimeapi.ListContainersResponse{Containers: []*runtimeapi.Container{
		container("pod", "app", "private"), container("pod", "app", "away"), container("other", "app", "foreign"),
	}}, nil
}

func TestLocalImages(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "cri.sock")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	runtimeapi.RegisterImageServiceServer(server, fakeRuntime{})
	runtimeapi.RegisterRuntimeServiceServer(server, fakeRuntime{})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	there, away := cri.New("unix://"+socket), cri.New("unix://"+socket+".none")
	t.Cleanup(func() { _, _ = there.Close(), away.Close() })

	cases := map[string]struct {
		runtime          Runtime
		pod              types.UID
		container, image string
		answers          bool
		want             bool
	}{
		"the container ran with it":                              {pod: "pod", container: "app", image: "private", want: true},
		"its registry answers":                                   {pod: "pod", container: "app", image: "private", answers: true},
		"it is not on the node anymore":                          {pod: "pod", container: "app", image: "away"},
		"another pod ran with it, this one may have no right to": {pod: "pod", container: "app", image: "foreign"},
		"another container of the pod ran with it":               {pod: "pod", container: "side", image: "private"},
		"the runtime does not answer":                            {runtime: away, pod: "pod", container: "app", image: "private"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			images := &Images{Runtime: there, Answers: func(string) bool { return tc.answers }}
			if tc.runtime != nil {
				images.Runtime = tc.runtime
			}
			if got := images.Local(tc.pod, tc.container, tc.image); got != tc.want {
				t.Errorf("%t, want %t", got, tc.want)
			}
		})
	}
}

func TestPulledImages(t *testing.T) {
	pods := []snapshot.Object{
		{Raw: []byte(`{"spec":{"initContainers":[{"image":"a","imagePullPolicy":"Always"}],"containers":[{"image":"b","imagePullPolicy":"IfNotPresent"},{"image":"c","imagePullPolicy":"Always"}]}}`)},
		{Raw: []byte(`{"spec":{}}`)},
	}
	if diff := cmp.Diff([]string{"a", "c"}, PulledImages(pods)); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
}
