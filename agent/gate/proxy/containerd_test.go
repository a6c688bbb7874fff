package proxy

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const containerdConfig = `version = 3
root = "%[1]s/root"
state = "%[1]s/state"
[grpc]
  address = "%[1]s/c.sock"
[plugins.'io.containerd.cri.v1.runtime'.cni]
  conf_dir = "%[1]s/cni"
[plugins.'io.containerd.internal.v1.opt']
  path = "%[1]s/opt"
[plugins.'io.containerd.nri.v1.nri']
  disable = true
`

// containerd is a real one without pods, in a mount namespace of its own.
type containerd struct {
	dir, program string
	command      *exec.Cmd
}

func startContainerd(t *testing.T) *containerd {
	t.Helper()
	tools := os.Getenv("REKINDLE_TOOLS")
	if tools == "" {
		tools = "../../../bin/tools"
	}
	program := filepath.Join(tools, "containerd")
	if _, err := os.Stat(program); err != nil || os.Geteuid() != 0 {
		t.Skipf("needs root, and %s; make e2e-tools", program)
	}
	c := &containerd{dir: t.TempDir(), program: program}
	if err := os.WriteFile(filepath.Join(c.dir, "config.toml"), fmt.Appendf(nil, containerdConfig, c.dir), 0o600); err != nil {
		t.Fatal(err)
	}
	c.start(t)
	t.Cleanup(func() { c.stop(t) })
	return c
}

func (c *containerd) socket() string { return filepath.Join(c.dir, "c.sock") }

func (c *containerd) start(t *testing.T) {
	t.Helper()
	c.command = exec.Command(c.program, "-c", filepath.Join(c.dir, "config.toml"))
	c.command.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if err := c.command.Start(); err != nil {
		t.Skipf("containerd cannot be started here: %v", err)
	}
	conn := dial(t, c.socket())
	eventually(t, "containerd answers", func() bool {
		_, err := unary(t.Context(), conn, "/runtime.v1.RuntimeService/Version", nil)
		return err == nil
	})
}

func (c *containerd) stop(t *testing.T) {
	t.Helper()
	if c.command.ProcessState != nil {
		return
	}
	if err := c.command.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = c.command.Wait() // it says that it was killed
}

// stopped says whether every thread has heard SIGSTOP.
func (c *containerd) stopped(t *testing.T) bool {
	t.Helper()
	states, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", c.command.Process.Pid))
	if err != nil || len(states) == 0 {
		t.Fatal(states, err)
	}
	for _, path := range states {
		state, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(state, []byte("State:\tT")) {
			return false
		}
	}
	return true
}

func TestContainerdAnswersAsWithoutTheProxy(t *testing.T) {
	c := startContainerd(t)
	direct, proxied := dial(t, c.socket()), dial(t, startProxy(t, c.socket(), nil).socket)
	const runtimeService, imageService = "/runtime.v1.RuntimeService/", "/runtime.v1.ImageService/"
	tests := map[string]struct {
		request proto.Message
		want    codes.Code
		// moving answers differ each time: only their kind and number is compared.
		moving bool
	}{
		runtimeService + "Version":                            {request: &runtimeapi.VersionRequest{}},
		runtimeService + "Status":                             {request: &runtimeapi.StatusRequest{}},
		runtimeService + "RuntimeConfig":                      {request: &runtimeapi.RuntimeConfigRequest{}},
		runtimeService + "ListPodSandbox":                     {request: &runtimeapi.ListPodSandboxRequest{}},
		runtimeService + "ListContainers":                     {request: &runtimeapi.ListContainersRequest{}},
		runtimeService + "StreamPodSandboxes":                 {request: &runtimeapi.StreamPodSandboxesRequest{}},
		runtimeService + "StreamContainers":                   {request: &runtimeapi.StreamContainersRequest{}},
		runtimeService + "PodSandboxStatus":                   {request: &runtimeapi.PodSandboxStatusRequest{PodSandboxId: "none"}, want: codes.NotFound},
		runtimeService + "StopPodSandbox":                     {request: &runtimeapi.StopPodSandboxRequest{PodSandboxId: "none"}},
		runtimeService + "ContainerStatus":                    {request: &runtimeapi.ContainerStatusRequest{ContainerId: "none"}, want: codes.NotFound},
		runtimeService + "ExecSync":                           {request: &runtimeapi.ExecSyncRequest{ContainerId: "none", Cmd: []string{"x"}}, want: codes.NotFound},
		runtimeService + "FromTheFuture":                      {request: &runtimeapi.VersionRequest{}, want: codes.Unimplemented},
		"/runtime.v2.RuntimeService/Version":                  {request: &runtimeapi.VersionRequest{}, want: codes.Unimplemented},
		imageService + "ListImages":                           {request: &runtimeapi.ListImagesRequest{}},
		imageService + "ImageStatus":                          {request: &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: "none"}}},
		imageService + "ImageFsInfo":                          {request: &runtimeapi.ImageFsInfoRequest{}, moving: true},
		imageService + "PullImage":                            {request: &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: "localhost:1/none:1"}}, want: codes.Unknown, moving: true},
		"/containerd.services.version.v1.Version/Version":     {request: &runtimeapi.VersionRequest{}},
		"/containerd.services.namespaces.v1.Namespaces/List":  {request: &runtimeapi.VersionRequest{}},
		"/containerd.services.introspection.v1.Future/Method": {request: &runtimeapi.VersionRequest{}, want: codes.Unimplemented},
	}
	for method, tc := range tests {
		t.Run(method, func(t *testing.T) {
			request, err := proto.Marshal(tc.request)
			if err != nil {
				t.Fatal(err)
			}
			want := call(t.Context(), t, direct, method, [][]byte{request})
			got := call(t.Context(), t, proxied, method, [][]byte{request})
			if tc.moving {
				if len(want.Messages) != len(got.Messages) || want.Code != got.Code {
					t.Errorf("without the proxy %v, with it %v", want, got)
				}
				return
			}
			if want.Code != tc.want {
				t.Errorf("without the proxy: %v %q, want %v", want.Code, want.Message, tc.want)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-without +with the proxy:\n%s", diff)
			}
		})
	}
}

func TestContainerdThatHangsAndRestarts(t *testing.T) {
	c := startContainerd(t)
	conns := map[string]*grpc.ClientConn{"without": dial(t, c.socket()), "with": dial(t, startProxy(t, c.socket(), nil).socket)}
	code := func(conn *grpc.ClientConn) codes.Code {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		return call(ctx, t, conn, "/runtime.v1.RuntimeService/Version", [][]byte{{}}).Code
	}
	all := func(want codes.Code) {
		t.Helper()
		for name, conn := range conns {
			if got := code(conn); got != want {
				t.Errorf("%s the proxy: %v, want %v", name, got, want)
			}
		}
	}
	events, err := conns["with"].NewStream(t.Context(), anyStream, events)
	if err != nil {
		t.Fatal(err)
	}
	all(codes.OK)
	if err := c.command.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "containerd has stopped", func() bool { return c.stopped(t) })
	all(codes.DeadlineExceeded)
	if err := c.command.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	all(codes.OK)
	c.stop(t)
	// The stream of events ends with the runtime, so that kubelet opens another.
	if err := events.RecvMsg(&[]byte{}); err == nil {
		t.Error("the stream of events goes on")
	}
	all(codes.Unavailable)
	c.start(t)
	for name, conn := range conns {
		eventually(t, name+" the proxy the runtime answers again", func() bool { return code(conn) == codes.OK })
	}
}
