package main

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"rekindle.edge/agent/cri"
	"rekindle.edge/agent/daemon"
	"rekindle.edge/agent/gate"
	"rekindle.edge/agent/gate/proxy"
	"rekindle.edge/agent/gate/stale"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/agent/wiring"
	"rekindle.edge/api/v1alpha1"
)

// sandboxes of earlier boots, and what the agent knows of this one once its store is open.
// Until then kubelet's stops pass.
type sandboxes struct {
	*stale.Sandboxes
	recovery atomic.Pointer[recovery]
}

// A recovery is the rest of a boot that is measured.
type recovery struct {
	over     <-chan struct{}
	expected func() int
}

func newSandboxes(log logr.Logger, runtime *cri.Client, boot func() (string, error)) *sandboxes {
	bootID, err := boot()
	if err != nil {
		log.Error(err, "Boot id cannot be read, sandboxes of earlier boots are not told from those of this one")
	}
	s := &sandboxes{}
	s.Sandboxes = stale.New(stale.Options{
		Log: log, Runtime: runtime, Dir: wiring.RunDir, BootID: bootID,
		Recovering: func() bool {
			r := s.recovery.Load()
			if r == nil {
				return false
			}
			select {
			case <-r.over:
				return false
			default:
				return true
			}
		},
		Expected: func() int {
			if r := s.recovery.Load(); r != nil {
				return r.expected()
			}
			return 0
		},
	})
	return s
}

// handlers are the gate's.
func handlers(start proxy.Handler, old *sandboxes) gate.Handlers {
	return gate.Handlers{RunPodSandbox: old.before(start), StopPodSandbox: old.Stop, RemovePodSandbox: old.Remove}
}

// before has the sandboxes known before one more is made.
func (s *sandboxes) before(make proxy.Handler) proxy.Handler {
	return func(ctx context.Context, request []byte, forward proxy.Forward) ([]byte, error) {
		return make(ctx, request, func(ctx context.Context, request []byte) ([]byte, error) {
			s.Begin(ctx)
			return forward(ctx, request)
		})
	}
}

// begin defers stops while the node comes back, and carries them out afterwards, also
// those of an agent before this one.
func (s *sandboxes) begin(ctx context.Context, objects *snapshot.Objects, witness daemon.Witness) {
	spec := witness.Spec()
	if spec != nil && spec.Spec.Mode == v1alpha1.ModeObserve {
		return
	}
	if open, over := witness.Recovery(); open {
		s.recovery.Store(&recovery{over: over, expected: addresses(objects)})
	}
	go s.Run(ctx)
}

// metrics are the gate's of them.
func (s *sandboxes) metrics() []prometheus.Collector {
	return []prometheus.Collector{prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "rekindle_sandbox_stops_waiting",
		Help: "Stops of sandboxes of earlier boots that kubelet was told of as done and that wait for the recovery to be over.",
	}, func() float64 { return float64(s.Waiting()) })}
}

// addresses gives a function that counts the pods which want an address of their own.
func addresses(objects *snapshot.Objects) func() int {
	var mu sync.Mutex
	var counted uint64
	count := 0
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		pods, version := objects.List(snapshot.Pods)
		if version == counted {
			return count
		}
		count, counted = 0, version
		for _, object := range pods {
			var pod corev1.Pod
			ended := json.Unmarshal(object.Raw, &pod) == nil &&
				(pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed)
			if !ended && !pod.Spec.HostNetwork {
				count++
			}
		}
		return count
	}
}
