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

// awaitNetwork returns when a pod can be given a network, and the call is in the queue. An
// attempt costs as much as asking, so one that has failed is followed by another one soon.
func (h *Holder) awaitNetwork(ctx context.Context, c *call, until time.Duration, failed error) error {
	if failed != nil {
		h.enter(c, offline)
	}
	pause := networkEvery
	if failed != nil {
		pause = retryEvery
	}
	manifests := h.manifests(c)
	for first := true; ; first = false {
		if !(first && failed != nil) && h.networkReady(ctx) || h.isPassing() {
			h.enter(c, waiting)
			return nil
		}
		if h.Boot() >= until {
			why := "the runtime's pod network is not set up"
			if failed != nil {
				why = status.Convert(failed).Message()
			}
			return refused(why)
		}
		if ended, err := h.pause(ctx, c, pause, manifests); ended {
			return err
		}
		pause = networkEvery
	}
}

func (h *Holder) enter(c *call, next phase) {
	h.do(func(now time.Duration) { c.phase, c.since = next, now })
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
