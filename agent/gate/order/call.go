package order

import (
	"context"
	"maps"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"rekindle.edge/agent/gate/proxy"
)

const (
	// makeTime is how long before its deadline a call is answered, if that is no more than
	// a quarter of its time: what was released last must still be made in time.
	makeTime = 15 * time.Second
	// lookTime is how often static pods that are held are compared with the node's disk.
	lookTime = 500 * time.Millisecond
)

// RunPodSandbox is a handler of the gate.
func (h *Holder) RunPodSandbox(ctx context.Context, request []byte, forward proxy.Forward) ([]byte, error) {
	var asked runtimeapi.RunPodSandboxRequest
	if !h.mayHold(ctx) || proto.Unmarshal(request, &asked) != nil || asked.GetConfig().GetMetadata() == nil {
		return forward(ctx, request)
	}
	c := h.arrive(ctx, asked.GetConfig())
	if c == nil {
		return forward(ctx, request)
	}
	defer h.leave(c)
	until := h.Boot() + networkTime
	var failed error
	for {
		if err := h.await(ctx, c, until, failed); err != nil {
			return nil, err
		}
		response, err := forward(ctx, request)
		switch {
		case err == nil:
			h.wasMade(c)
			return response, nil
		case h.isPassing() || c.pod.hostNetwork:
			return response, err
		case failed != nil && nameTaken(err):
			return nil, refused(status.Convert(err).Message())
		case !networkFailed(err):
			return response, err
		}
		failed = err
	}
}

// mayHold waits until the agent knows whether it holds anything.
func (h *Holder) mayHold(ctx context.Context) bool {
	select {
	case <-h.decided:
		return !h.isPassing()
	default:
	}
	limit := time.NewTimer(h.started + planTime - h.Boot())
	defer limit.Stop()
	select {
	case <-h.decided:
		return !h.isPassing()
	case <-limit.C:
	case <-ctx.Done():
	}
	return false
}

func (h *Holder) isPassing() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.passing
}

// arrive enters a call; nil: it is none that is held.
func (h *Holder) arrive(ctx context.Context, config *runtimeapi.PodSandboxConfig) *call {
	var c *call
	h.do(func(now time.Duration) {
		if h.passing || h.planner == nil {
			return
		}
		c = h.planner.callOf(config)
		if !h.planner.holds(c) {
			c = nil
			return
		}
		if deadline, ok := ctx.Deadline(); ok {
			left := time.Until(deadline)
			c.deadline = now + left - min(makeTime, left/4)
		}
		if h.stopping {
			c.revoked = "the agent is stopping"
		}
		c.since = now
		if !c.pod.hostNetwork {
			// Until it is known that there is a network.
			c.phase = offline
		}
		h.planner.calls[c] = true
		h.planner.lastCall = now
		h.Log.V(1).Info("Pod may not start yet", "pod", c.pod.String(), "reason", h.planner.why(c, now))
	})
	return c
}

// callOf is the call that makes a sandbox as it is described.
func (p *planner) callOf(config *runtimeapi.PodSandboxConfig) *call {
	asked := config.GetMetadata()
	of := pod{
		name: name{asked.GetNamespace(), asked.GetName()}, uid: asked.GetUid(), labels: config.GetLabels(),
		static: config.GetAnnotations()[sourceAnnotation] != "" && config.GetAnnotations()[sourceAnnotation] != sourceAPI,
	}
	if listed := p.pods[of.name]; listed != nil && (of.static || listed.uid == of.uid) {
		uid, static := of.uid, of.static
		of = *listed
		of.uid, of.static, of.labels = uid, static, maps.Clone(listed.labels)
	}
	of.hostNetwork = config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetNetwork() == runtimeapi.NamespaceMode_NODE
	of.group = p.groupOf(&of)
	return &call{pod: &of, verdict: make(chan error, 1)}
}

// end tells a call how its waiting has ended. It hears of the first end.
func (c *call) end(err error) {
	select {
	case c.verdict <- err:
	default:
	}
}

func (h *Holder) leave(c *call) {
	h.do(func(now time.Duration) {
		if h.planner != nil {
			delete(h.planner.calls, c)
			h.planner.lastCall = now
		}
	})
}

func (h *Holder) wasMade(c *call) {
	h.do(func(now time.Duration) {
		if h.planner != nil {
			h.planner.made[c.pod.name] = true
		}
		if !c.pod.hostNetwork {
			h.networkGood = now
			h.setNetwork(true)
		}
	})
}

// await returns when it is the call's turn. Failed is why the attempt before did not work;
// no attempt is made after a time.
func (h *Holder) await(ctx context.Context, c *call, until time.Duration, failed error) error {
	if !c.pod.hostNetwork {
		if err := h.awaitNetwork(ctx, c, until, failed); err != nil {
			return err
		}
	}
	manifests := h.manifests(c)
	for {
		passing := h.isPassing()
		limit := lookTime
		if passing {
			limit = 0 // but a verdict comes first
		}
		if ended, err := h.pause(ctx, c, limit, manifests); ended {
			return err
		}
		if passing {
			return nil
		}
	}
}

func (h *Holder) manifests(c *call) string {
	if !c.pod.static || h.Manifests == nil {
		return ""
	}
	return h.Manifests()
}

// pause waits for a verdict, which is an error or that the call goes on, but no longer than
// it is said.
func (h *Holder) pause(ctx context.Context, c *call, limit time.Duration, manifests string) (ended bool, err error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-c.verdict:
		return true, err
	default:
	}
	select {
	case err := <-c.verdict:
		return true, err
	case <-ctx.Done():
		return true, status.FromContextError(ctx.Err()).Err()
	case <-timer.C:
	}
	if h.manifests(c) != manifests {
		return true, refused("the manifests of static pods have changed")
	}
	return false, nil
}
