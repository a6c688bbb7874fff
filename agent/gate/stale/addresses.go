package stale

import (
	"context"
	"fmt"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

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
