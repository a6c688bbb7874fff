package stale

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"rekindle.edge/agent/gate/proxy"
)

const (
	// listTimeout bounds the first list of a boot: the first sandbox waits for it.
	listTimeout = 2 * time.Second
	// statusTimeout bounds a question about one sandbox, or the network.
	statusTimeout = time.Second
	// viewFor is how long a look at the leases is good for: kubelet stops many sandboxes at once.
	viewFor = 100 * time.Millisecond
	// networksFor is how long the network configuration is taken as read.
	networksFor = 5 * time.Second
)

// Runtime is the container runtime itself, not the gate's socket.
type Runtime interface {
	ListPodSandbox(context.Context, *runtimeapi.ListPodSandboxRequest, ...grpc.CallOption) (*runtimeapi.ListPodSandboxResponse, error)
	PodSandboxStatus(context.Context, *runtimeapi.PodSandboxStatusRequest, ...grpc.CallOption) (*runtimeapi.PodSandboxStatusResponse, error)
	StopPodSandbox(context.Context, *runtimeapi.StopPodSandboxRequest, ...grpc.CallOption) (*runtimeapi.StopPodSandboxResponse, error)
	Status(context.Context, *runtimeapi.StatusRequest, ...grpc.CallOption) (*runtimeapi.StatusResponse, error)
}

// Options are what Sandboxes works with.
type Options struct {
	Log     logr.Logger
	Runtime Runtime
	// Dir is the directory in /run for what outlives a restart of the agent.
	Dir string
	// BootID is the kernel's id of this boot. Unset: nothing is deferred.
	BootID string
	// Recovering says whether the node is still coming back. Once it is not, it never is
	// again in this boot.
	Recovering func() bool
	// Expected is how many pods with an address of their own the node has; unset, or less
	// than the sandboxes of earlier boots show: as many as those belonged to.
	Expected func() int
}

// Sandboxes defers the stops of sandboxes of earlier boots.
type Sandboxes struct {
	Options

	// root of the node's files, the pauses of Run, and viewFor; tests set them.
	root               string
	pace, retry, fresh time.Duration

	// passing bounds how many stops are carried out at once while pods start.
	passing chan struct{}

	mu    sync.Mutex
	state *state

	viewMu   sync.Mutex
	lastView view
	viewed   time.Time

	networkMu    sync.Mutex
	networks     []network
	networksRead time.Time
	told         string
}

// New makes Sandboxes; Run carries out what they defer.
func New(options Options) *Sandboxes {
	return &Sandboxes{Options: options, root: "/", pace: 500 * time.Millisecond, retry: 30 * time.Second, fresh: viewFor,
		passing: make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// Begin must be called before the first RunPodSandbox of this boot is passed on: what is
// in the runtime by then is of an earlier boot. Later calls cost nothing.
func (s *Sandboxes) Begin(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.take(ctx); err != nil {
		// A sandbox may be made now; from here on there is no telling.
		s.none(fmt.Errorf("the runtime was asked for its sandboxes: %w", err))
	}
}

// take takes the set. An error means that it can be tried again.
func (s *Sandboxes) take(ctx context.Context) error {
	if s.state != nil {
		return nil
	}
	if s.BootID == "" {
		s.state = &state{}
		return nil
	}
	kept, err := loadState(s.Dir, s.BootID)
	if err != nil {
		s.none(err)
		return nil
	}
	if kept != nil {
		s.state = kept
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), listTimeout)
	defer cancel()
	list, err := s.Runtime.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return err
	}
	first := &state{BootID: s.BootID, Sandboxes: map[string]mark{}}
	pods, ids := map[string]bool{}, map[string]bool{}
	for _, sandbox := range list.GetItems() {
		if sandbox.GetState() != runtimeapi.PodSandboxState_SANDBOX_NOTREADY {
			s.none(fmt.Errorf("sandbox %s of pod %s/%s runs already", sandbox.GetId(), sandbox.GetMetadata().GetNamespace(), sandbox.GetMetadata().GetName()))
			return nil
		}
		first.Sandboxes[sandbox.GetId()] = listed
		ids[sandbox.GetId()], pods[sandbox.GetMetadata().GetUid()] = true, true
	}
	first.Pods = len(pods)
	for _, n := range s.currentNetworks(ctx) {
		leases, err := readLeases(n.dir)
		if err != nil {
			s.Log.Error(err, "Leases of addresses cannot be read", "network", n.name)
			continue
		}
		first.Orphans = append(first.Orphans, orphans(leases, ids)...)
	}
	if err := first.save(s.Dir); err != nil {
		s.none(err)
		return nil
	}
	s.state = first
	s.Log.Info("Sandboxes of earlier boots are known", "sandboxes", len(first.Sandboxes), "pods", first.Pods, "leasesOfNobody", len(first.Orphans))
	return nil
}

// none settles that nothing is deferred in this boot, also after a restart of the agent.
func (s *Sandboxes) none(reason error) {
	s.state = &state{BootID: s.BootID}
	s.Log.Info("Stops of sandboxes are not deferred in this boot", "reason", reason.Error())
	if err := s.state.save(s.Dir); err != nil {
		s.Log.Error(err, "That stops are not deferred cannot be kept")
	}
}

// Stop answers StopPodSandbox.
func (s *Sandboxes) Stop(ctx context.Context, request []byte, forward proxy.Forward) ([]byte, error) {
	var stop runtimeapi.StopPodSandboxRequest
	if err := proto.Unmarshal(request, &stop); err != nil {
		return forward(ctx, request)
	}
	id := stop.GetPodSandboxId()
	if !s.isStale(ctx, id) {
		return forward(ctx, request)
	}
	if s.Recovering() && s.notReady(ctx, id) {
		switch v := s.view(ctx).decide(id); v {
		case deferred:
			if err := s.set(id, acknowledged); err != nil {
				s.Log.Error(err, "Stop is carried out at once, it could not be kept for later", "sandbox", id)
				break
			}
			if !s.Recovering() {
				break // Run may have seen that nothing waits
			}
			s.Log.V(1).Info("Stop is deferred", "sandbox", id)
			return proto.Marshal(&runtimeapi.StopPodSandboxResponse{})
		default:
			s.Log.V(1).Info("Stop is carried out at once", "sandbox", id, "reason", v)
			select {
			case s.passing <- struct{}{}:
				defer func() { <-s.passing }()
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}
	response, err := forward(ctx, request)
	if err == nil {
		s.isDone(id)
	}
	return response, err
}

// Remove answers RemovePodSandbox. A runtime stops what it removes, so that of a sandbox
// whose stop waits is left for later too: kubelet's collection of garbage asks again each
// minute, for as long as the sandbox is listed.
func (s *Sandboxes) Remove(ctx context.Context, request []byte, forward proxy.Forward) ([]byte, error) {
	var remove runtimeapi.RemovePodSandboxRequest
	if err := proto.Unmarshal(request, &remove); err != nil {
		return forward(ctx, request)
	}
	id := remove.GetPodSandboxId()
	if s.is(id, acknowledged) && s.Recovering() && s.notReady(ctx, id) {
		s.Log.V(1).Info("Removal is left for later", "sandbox", id)
		return proto.Marshal(&runtimeapi.RemovePodSandboxResponse{})
	}
	response, err := forward(ctx, request)
	if err == nil {
		s.isDone(id)
	}
	return response, err
}

// isStale says whether a sandbox is of an earlier boot.
func (s *Sandboxes) isStale(ctx context.Context, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.take(ctx); err != nil {
		return false
	}
	return s.state.Sandboxes[id] != ""
}

func (s *Sandboxes) is(id string, want mark) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state != nil && s.state.Sandboxes[id] == want
}

// set marks a sandbox; on /run before it returns.
func (s *Sandboxes) set(id string, m mark) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.state.Sandboxes[id]
	if before == m {
		return nil
	}
	s.state.Sandboxes[id] = m
	if err := s.state.save(s.Dir); err != nil {
		s.state.Sandboxes[id] = before
		return err
	}
	return nil
}

// isDone marks a sandbox of an earlier boot that was stopped.
func (s *Sandboxes) isDone(id string) {
	if s.is(id, "") {
		return
	}
	if err := s.set(id, done); err != nil {
		s.Log.Error(err, "It cannot be kept that a sandbox was stopped; it will be stopped again", "sandbox", id)
	}
}

// notReady asks the runtime once more. What does not say so clearly is not deferred.
func (s *Sandboxes) notReady(ctx context.Context, id string) bool {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	status, err := s.Runtime.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: id})
	return err == nil && status.GetStatus() != nil && status.GetStatus().GetState() == runtimeapi.PodSandboxState_SANDBOX_NOTREADY
}

// view looks at the addresses as they are now, or were a moment ago.
func (s *Sandboxes) view(ctx context.Context) view {
	s.viewMu.Lock()
	defer s.viewMu.Unlock()
	if s.viewed.IsZero() || time.Since(s.viewed) >= s.fresh {
		s.lastView, s.viewed = s.look(ctx), time.Now()
	}
	return s.lastView
}

func (s *Sandboxes) look(ctx context.Context) view {
	networks := s.currentNetworks(ctx)
	v := view{networks: networks, setUp: setUpIn(s.root, networks)}
	for _, n := range networks {
		leases, err := readLeases(n.dir)
		if err != nil {
			s.tell(fmt.Sprintf("leases of network %s cannot be read: %v", n.name, err))
			return view{}
		}
		v.leases = append(v.leases, leases)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v.expected = s.state.Pods
	if s.Expected != nil {
		v.expected = max(v.expected, s.Expected())
	}
	stale := map[string]bool{}
	for id := range s.state.Sandboxes {
		stale[id] = true
	}
	orphan := map[string]bool{}
	for _, l := range s.state.Orphans {
		orphan[l.Path] = true
	}
	v.stale = func(l lease) bool { return stale[l.sandbox] || orphan[l.Path] && l.sandbox == "" }
	return v
}

// currentNetworks are none if they are not known.
func (s *Sandboxes) currentNetworks(ctx context.Context) []network {
	s.networkMu.Lock()
	defer s.networkMu.Unlock()
	if s.networks != nil && time.Since(s.networksRead) < networksFor {
		return s.networks
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	status, err := s.Runtime.Status(ctx, &runtimeapi.StatusRequest{Verbose: true})
	if err == nil {
		s.networks, err = parseNetworks(status.GetInfo()["cniconfig"], s.root)
	}
	if err != nil {
		s.networks = nil
		s.tellLocked(err.Error())
	}
	s.networksRead = time.Now()
	return s.networks
}

func (s *Sandboxes) tell(reason string) {
	s.networkMu.Lock()
	defer s.networkMu.Unlock()
	s.tellLocked(reason)
}

// tellLocked says once why stops are not deferred.
func (s *Sandboxes) tellLocked(reason string) {
	if s.told != reason {
		s.told = reason
		s.Log.Info("Stops of sandboxes are carried out as they come, since the addresses of pods cannot be counted", "reason", reason)
	}
}
