package stale

import (
	"context"
	"fmt"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

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
