package stale

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// stopTimeout is what kubelet gives a stop by default.
const stopTimeout = 2 * time.Minute

// Run carries out what was acknowledged: as soon as addresses run short, and the rest after
// the recovery, one at a time and not faster than the pace. It returns when ctx ends, or
// when the recovery is over and nothing is left.
func (s *Sandboxes) Run(ctx context.Context) {
	begin, count, ours := time.Now(), 0, false
	failed := map[string]time.Time{}
	for {
		recovering := s.Recovering()
		s.mu.Lock()
		// What an agent before this one acknowledged; or the set, once the runtime is up.
		_ = s.take(ctx)
		s.mu.Unlock()
		id, left := s.next(ctx, recovering, failed)
		ours = ours || recovering || left
		switch {
		case id != "":
			if s.carryOut(ctx, id) {
				count++
			} else {
				failed[id] = time.Now()
			}
		case !recovering && !left:
			if !ours {
				return // of a node that is only watched nothing is changed
			}
			s.releaseOrphans()
			s.Log.Info("No sandbox of an earlier boot waits to be stopped", "stopped", count, "after", time.Since(begin).Round(time.Millisecond).String())
			return
		}
		pause := s.pace
		if recovering && id != "" {
			pause = 0 // pods wait for the address
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// Waiting is how many stops were acknowledged and are not carried out yet.
func (s *Sandboxes) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == nil {
		return 0
	}
	return len(s.state.with(acknowledged))
}

// next is the sandbox to stop now, if any, those that hold an address first. Left says
// whether any waits.
func (s *Sandboxes) next(ctx context.Context, recovering bool, failed map[string]time.Time) (id string, left bool) {
	s.mu.Lock()
	var waiting []string
	if s.state != nil {
		waiting = s.state.with(acknowledged)
	}
	s.mu.Unlock()
	left = len(waiting) > 0
	waiting = slices.DeleteFunc(waiting, func(id string) bool {
		at, ok := failed[id]
		return ok && time.Since(at) < s.retry
	})
	if len(waiting) == 0 {
		return "", left
	}
	v := s.view(ctx)
	if recovering {
		if v.fits() {
			return "", left
		}
		s.releaseOrphans()
	}
	slices.Sort(waiting)
	for _, id := range waiting {
		if v.holds(id) {
			return id, left
		}
	}
	if recovering {
		return "", left
	}
	return waiting[0], left
}

// carryOut stops a sandbox if it is still there and not ready. It is false if that has to
// be tried again.
func (s *Sandboxes) carryOut(ctx context.Context, id string) bool {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	now, err := s.Runtime.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: id})
	switch {
	case status.Code(err) == codes.NotFound:
		err = nil
	case err != nil:
	case now.GetStatus().GetState() == runtimeapi.PodSandboxState_SANDBOX_READY:
		s.Log.Info("Sandbox of an earlier boot is ready, so it is left alone", "sandbox", id)
	default:
		_, err = s.Runtime.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: id})
	}
	if err != nil {
		s.Log.Error(err, "Sandbox of an earlier boot cannot be stopped, trying again", "sandbox", id, "in", s.retry.String())
		return false
	}
	s.isDone(id)
	return true
}

// releaseOrphans gives back the addresses that belong to nobody.
func (s *Sandboxes) releaseOrphans() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == nil || len(s.state.Orphans) == 0 {
		return
	}
	count, err := release(s.state.Orphans)
	if err != nil {
		s.Log.Error(err, "Addresses that belong to no sandbox cannot all be released")
	}
	s.Log.Info("Addresses that belong to no sandbox are released", "addresses", count)
	s.state.Orphans = nil
	if err := s.state.save(s.Dir); err != nil {
		s.Log.Error(err, "It cannot be kept that addresses were released")
	}
}
