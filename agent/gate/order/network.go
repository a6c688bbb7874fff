package order

import (
	"context"
	"time"

	"google.golang.org/grpc/status"
)

const (
	// networkEvery is how often the runtime is asked for its network while a pod waits for
	// it, retryEvery how often a pod is tried again whose network could not be set up.
	networkEvery = 200 * time.Millisecond
	retryEvery   = time.Second
	// networkTime is how long a pod is held for the network at a time. Then kubelet is
	// answered, and people see why.
	networkTime = 20 * time.Second
	// goodTime is how long pods get a network after the last one that did, without asking.
	goodTime = 2 * time.Second
)

// awaitNetwork returns when a pod can be given a network, and the call is in the queue.
// After an attempt that has failed, which is what the runtime knows no better, that is soon.
func (h *Holder) awaitNetwork(ctx context.Context, c *call, until time.Duration, failed error) error {
	if failed != nil {
		h.do(func(now time.Duration) {
			c.phase, c.since = offline, now
			h.setNetwork(false)
		})
	}
	manifests := h.manifests(c)
	for {
		if h.isPassing() || h.worthTrying(c, failed) && h.networkReady(ctx) {
			h.do(func(now time.Duration) { c.phase, c.since = waiting, now })
			return nil
		}
		if h.Boot() >= until {
			why := "the runtime's pod network is not set up"
			if failed != nil {
				why = status.Convert(failed).Message()
			}
			return refused(why)
		}
		if ended, err := h.pause(ctx, c, networkEvery, manifests); ended {
			return err
		}
	}
}

// worthTrying says whether a pod that got no network may get one now: another has, or some
// time has passed.
func (h *Holder) worthTrying(c *call, failed error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return failed == nil || h.planner == nil || !h.planner.noNetwork || h.Boot() >= c.since+retryEvery
}

// setNetwork notes whether a pod was given a network.
func (h *Holder) setNetwork(good bool) {
	if h.planner != nil {
		h.planner.noNetwork = !good
	}
}

func (h *Holder) networkReady(ctx context.Context) bool {
	h.mu.Lock()
	good, now := h.networkGood, h.Boot()
	h.mu.Unlock()
	if h.NetworkReady == nil || good > 0 && now < good+goodTime {
		return true
	}
	ready, err := h.NetworkReady(ctx)
	if err == nil && ready {
		h.mu.Lock()
		h.networkGood = h.Boot()
		h.mu.Unlock()
	}
	return err != nil || ready
}
