package stale

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	ready    = runtimeapi.PodSandboxState_SANDBOX_READY
	notReady = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
)

// fakeRuntime stops sandboxes as containerd and host-local do.
type fakeRuntime struct {
	cni string
	dir string // of the leases

	mu        sync.Mutex
	sandboxes map[string]runtimeapi.PodSandboxState
	stopped   []string
	down      error
	broken    map[string]bool
}

func (f *fakeRuntime) ListPodSandbox(context.Context, *runtimeapi.ListPodSandboxRequest, ...grpc.CallOption) (*runtimeapi.ListPodSandboxResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	response := &runtimeapi.ListPodSandboxResponse{}
	for id, state := range f.sandboxes {
		response.Items = append(response.Items, &runtimeapi.PodSandbox{Id: id, State: state, Metadata: &runtimeapi.PodSandboxMetadata{Uid: "uid-" + id}})
	}
	return response, f.down
}

func (f *fakeRuntime) PodSandboxStatus(_ context.Context, r *runtimeapi.PodSandboxStatusRequest, _ ...grpc.CallOption) (*runtimeapi.PodSandboxStatusResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	state, ok := f.sandboxes[r.PodSandboxId]
	if !ok {
		return nil, status.Error(codes.NotFound, "no such sandbox")
	}
	return &runtimeapi.PodSandboxStatusResponse{Status: &runtimeapi.PodSandboxStatus{Id: r.PodSandboxId, State: state}}, f.down
}

func (f *fakeRuntime) StopPodSandbox(_ context.Context, r *runtimeapi.StopPodSandboxRequest, _ ...grpc.CallOption) (*runtimeapi.StopPodSandboxResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken[r.PodSandboxId] {
		delete(f.broken, r.PodSandboxId) // it works the second time
		return nil, errors.New("the network plugin has failed")
	}
	f.stopped = append(f.stopped, r.PodSandboxId)
	leases, err := readLeases(f.dir)
	for _, l := range leases {
		if l.sandbox == r.PodSandboxId {
			err = errors.Join(err, os.Remove(l.Path))
		}
	}
	return &runtimeapi.StopPodSandboxResponse{}, err
}

func (f *fakeRuntime) Status(context.Context, *runtimeapi.StatusRequest, ...grpc.CallOption) (*runtimeapi.StatusResponse, error) {
	return &runtimeapi.StatusResponse{Info: map[string]string{"cniconfig": f.cni}}, f.down
}

func (f *fakeRuntime) stops() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(slices.Values(f.stopped))
}

// forward passes a stop on as the proxy does.
func (f *fakeRuntime) forward(ctx context.Context, request []byte) ([]byte, error) {
	var stop runtimeapi.StopPodSandboxRequest
	if err := proto.Unmarshal(request, &stop); err != nil {
		return nil, err
	}
	response, err := f.StopPodSandbox(ctx, &stop)
	if err != nil {
		return nil, err
	}
	return proto.Marshal(response)
}

// rig is a node after a restart: sandboxes a and b of the boot before, with an address each.
type rig struct {
	t          *testing.T
	root       string
	runtime    *fakeRuntime
	recovering atomic.Bool
	expected   int
}

func newRig(t *testing.T, subnet string) *rig {
	root := t.TempDir()
	r := &rig{t: t, root: root, expected: 2, runtime: &fakeRuntime{
		cni:       cni(t, "pods", fmt.Sprintf(`{"type":"bridge","ipam":{"type":"host-local","subnet":%q}}`, subnet)),
		dir:       filepath.Join(root, hostLocalDir, "pods"),
		sandboxes: map[string]runtimeapi.PodSandboxState{id("a"): notReady, id("b"): notReady},
		broken:    map[string]bool{},
	}}
	r.recovering.Store(true)
	r.lease("10.1.2.2", id("a"))
	r.lease("10.1.2.3", id("b"))
	return r
}

func (r *rig) lease(address, sandbox string) {
	write(r.t, filepath.Join(r.runtime.dir, address), sandbox+"\r\neth0")
}

// agent starts an agent, the first or a later one of this boot.
func (r *rig) agent() *Sandboxes {
	s := New(Options{
		Log: testr.New(r.t), Runtime: r.runtime, Dir: filepath.Join(r.root, "run"), BootID: "boot-1",
		Recovering: r.recovering.Load, Expected: func() int { return r.expected },
	})
	s.root, s.pace, s.retry, s.fresh = r.root, time.Millisecond, 5*time.Millisecond, 0
	return s
}

func (r *rig) stop(s *Sandboxes, id string) {
	r.t.Helper()
	request, err := proto.Marshal(&runtimeapi.StopPodSandboxRequest{PodSandboxId: id})
	if err == nil {
		_, err = s.Stop(r.t.Context(), request, r.runtime.forward)
	}
	if err != nil {
		r.t.Errorf("stop of %.1s: %v", id, err)
	}
}

// remove says whether a removal was passed on.
func (r *rig) remove(s *Sandboxes, id string) (passed bool) {
	r.t.Helper()
	request, err := proto.Marshal(&runtimeapi.RemovePodSandboxRequest{PodSandboxId: id})
	if err == nil {
		_, err = s.Remove(r.t.Context(), request, func(context.Context, []byte) ([]byte, error) {
			passed = true
			return nil, nil
		})
	}
	if err != nil {
		r.t.Errorf("removal of %.1s: %v", id, err)
	}
	return passed
}

func (r *rig) leases() []string {
	entries, err := os.ReadDir(r.runtime.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		if entry.Name() != "lock" {
			names = append(names, entry.Name())
		}
	}
	return names
}

func (r *rig) expectStopped(when string, want ...string) {
	r.t.Helper()
	if diff := cmp.Diff(want, r.runtime.stops()); diff != "" {
		r.t.Errorf("%s, sandboxes that the runtime stopped (-want +got):\n%s", when, diff)
	}
}

func TestStopsAreCarriedOutAfterTheRecovery(t *testing.T) {
	r := newRig(t, "10.1.2.0/24")
	s := r.agent()
	s.Begin(t.Context())
	r.stop(s, id("a"))
	r.stop(s, id("b"))
	if r.remove(s, id("a")) {
		t.Error("the removal of a sandbox whose stop waits was passed on")
	}
	r.expectStopped("in the recovery")
	if got := s.Waiting(); got != 2 {
		t.Errorf("%d stops wait, want 2", got)
	}
	r.recovering.Store(false)
	s.Run(t.Context())
	r.expectStopped("after it", id("a"), id("b"))
	if got := s.Waiting(); got != 0 {
		t.Errorf("%d stops wait after all, want none", got)
	}
	if !r.remove(s, id("a")) {
		t.Error("a removal after the recovery was not passed on")
	}
	if got := r.leases(); len(got) > 0 {
		t.Errorf("leases %v are left", got)
	}
}

func TestAnAgentThatIsKilledLeavesItsDebts(t *testing.T) {
	r := newRig(t, "10.1.2.0/24")
	first := r.agent()
	r.stop(first, id("a"))
	// Killed before it could do anything; sandboxes of this boot run by now.
	r.runtime.sandboxes[id("c")] = ready
	r.recovering.Store(false)
	second := r.agent()
	second.Run(t.Context())
	r.expectStopped("after the second agent ran", id("a"))
}

func TestAStopThatFailsIsTriedAgain(t *testing.T) {
	r := newRig(t, "10.1.2.0/24")
	s := r.agent()
	r.stop(s, id("a"))
	r.stop(s, id("b"))
	r.runtime.broken[id("a")] = true
	r.recovering.Store(false)
	s.Run(t.Context())
	r.expectStopped("in the end", id("a"), id("b"))
}

func TestWhatIsGoneOrReadyIsNotStoppedLater(t *testing.T) {
	r := newRig(t, "10.1.2.0/24")
	s := r.agent()
	r.stop(s, id("a"))
	r.stop(s, id("b"))
	delete(r.runtime.sandboxes, id("a"))
	r.runtime.sandboxes[id("b")] = ready
	r.recovering.Store(false)
	s.Run(t.Context())
	r.expectStopped("after the recovery")
}

func TestStopsThatPassUnchanged(t *testing.T) {
	cases := map[string]func(r *rig, s *Sandboxes) *Sandboxes{
		"the recovery is over": func(r *rig, s *Sandboxes) *Sandboxes {
			s.Begin(r.t.Context())
			r.recovering.Store(false)
			return s
		},
		"the sandbox is of this boot": func(r *rig, s *Sandboxes) *Sandboxes {
			r.runtime.sandboxes = map[string]runtimeapi.PodSandboxState{}
			s.Begin(r.t.Context())
			r.runtime.sandboxes[id("a")] = notReady
			return s
		},
		"the sandbox turns out to be ready": func(r *rig, s *Sandboxes) *Sandboxes {
			s.Begin(r.t.Context())
			r.runtime.sandboxes[id("a")] = ready
			return s
		},
		"sandboxes run already when the agent first looks": func(r *rig, s *Sandboxes) *Sandboxes {
			r.runtime.sandboxes[id("c")] = ready
			return s
		},
		"an agent before this one found sandboxes that ran": func(r *rig, s *Sandboxes) *Sandboxes {
			r.runtime.sandboxes[id("c")] = ready
			s.Begin(r.t.Context())
			delete(r.runtime.sandboxes, id("c"))
			return r.agent()
		},
		"the runtime did not answer before the first sandbox was made": func(r *rig, s *Sandboxes) *Sandboxes {
			r.runtime.down = errors.New("it does not answer")
			s.Begin(r.t.Context())
			r.runtime.down = nil
			return s
		},
		"the recovery ends while the stop is looked at": func(r *rig, s *Sandboxes) *Sandboxes {
			asked := 0
			s.Recovering = func() bool { asked++; return asked == 1 }
			return s
		},
		"the boot is not known": func(r *rig, s *Sandboxes) *Sandboxes {
			s.BootID = ""
			return s
		},
		"nothing can be kept": func(r *rig, s *Sandboxes) *Sandboxes {
			write(r.t, s.Dir, "a file in the way")
			return s
		},
		"what was kept is damaged": func(r *rig, s *Sandboxes) *Sandboxes {
			write(r.t, statePath(s.Dir, s.BootID), "{")
			return s
		},
		"the network is of another kind": func(r *rig, s *Sandboxes) *Sandboxes {
			r.runtime.cni = cni(r.t, "k8s", `{"type":"calico","ipam":{"type":"calico-ipam"}}`)
			return s
		},
	}
	for name, prepare := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, "10.1.2.0/24")
			s := prepare(r, r.agent())
			r.stop(s, id("a"))
			r.expectStopped("at once", id("a"))
			if !r.remove(s, id("a")) {
				t.Error("the removal was not passed on")
			}
		})
	}
}

func TestTheSetOfAnEarlierBootIsNotTaken(t *testing.T) {
	r := newRig(t, "10.1.2.0/24")
	before := r.agent()
	before.BootID = "boot-0"
	r.stop(before, id("a"))
	r.runtime.sandboxes[id("c")] = ready
	s := r.agent()
	r.stop(s, id("b"))
	r.expectStopped("at once", id("b"))
}

func TestAShortRange(t *testing.T) {
	// 13 addresses, 3 of them spare: with 2 old leases there is room for 8 pods.
	r := newRig(t, "10.1.2.0/28")
	s := r.agent()
	r.expected = 8
	r.stop(s, id("a"))
	r.expectStopped("while there is room")
	r.expected = 9
	r.stop(s, id("b"))
	r.expectStopped("when one pod more is expected", id("b"))
	// What was deferred earlier is in the way if the range gets shorter still.
	r.expected = 10
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx)
	}()
	deadline := time.Now().Add(10 * time.Second)
	for len(r.runtime.stops()) < 2 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	cancel()
	<-ended
	r.expectStopped("in the recovery", id("a"), id("b"))
}

func TestLeasesOfNobodyAreReleasedAfterTheRecovery(t *testing.T) {
	r := newRig(t, "10.1.2.0/24")
	write(t, filepath.Join(r.runtime.dir, "10.1.2.4"), "")
	r.lease("10.1.2.5", id("d"))
	s := r.agent()
	s.Begin(t.Context())
	r.lease("10.1.2.6", id("c")) // a pod of this boot, which the runtime does not list yet
	r.stop(s, id("a"))
	r.recovering.Store(false)
	s.Run(t.Context())
	if diff := cmp.Diff([]string{"10.1.2.3", "10.1.2.6"}, r.leases()); diff != "" {
		t.Errorf("leases after it (-want +got):\n%s", diff)
	}
}

func TestNothingIsReleasedWhereNothingIsDeferred(t *testing.T) {
	r := newRig(t, "10.1.2.0/24")
	write(t, filepath.Join(r.runtime.dir, "10.1.2.4"), "")
	r.recovering.Store(false)
	r.agent().Run(t.Context())
	if diff := cmp.Diff([]string{"10.1.2.2", "10.1.2.3", "10.1.2.4"}, r.leases()); diff != "" {
		t.Errorf("leases (-want +got):\n%s", diff)
	}
}

func TestTheKeptStateIsForRootAlone(t *testing.T) {
	r := newRig(t, "10.1.2.0/24")
	s := r.agent()
	r.stop(s, id("a"))
	info, err := os.Stat(statePath(s.Dir, "boot-1"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, error %v, want 0600", info.Mode(), err)
	}
	kept, err := loadState(s.Dir, "boot-1")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]mark{id("a"): acknowledged, id("b"): listed}
	if diff := cmp.Diff(want, maps.Clone(kept.Sandboxes)); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}
