package main

import (
	"errors"
	"sync/atomic"

	sddaemon "github.com/coreos/go-systemd/v22/daemon"
	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/agent/report"
	"rekindle.edge/agent/wiring"
)

// kubeletState is whether kubelet is wired, for systemctl status and for the NodeRecovery.
type kubeletState struct {
	told atomic.Pointer[metav1.Condition]
	// changed has room for one signal.
	changed chan struct{}
}

func newKubeletState() *kubeletState { return &kubeletState{changed: make(chan struct{}, 1)} }

// tell gives a function that takes the state: nil when kubelet is wired, else why not.
func (s *kubeletState) tell(log logr.Logger) func(error) {
	return func(problem error) {
		condition := report.Serving(problem)
		if errors.Is(problem, wiring.ErrObserve) {
			condition = report.ServingObserve()
		}
		s.told.Store(&condition)
		select {
		case s.changed <- struct{}{}:
		default:
		}
		text := "kubelet is wired to the local API"
		if problem != nil {
			text = "kubelet is not wired: " + problem.Error()
		}
		if _, err := sddaemon.SdNotify(false, "STATUS="+text); err != nil {
			log.Error(err, "systemd could not be told the status")
		}
	}
}

// condition LocalAPIServing.
func (s *kubeletState) condition() metav1.Condition {
	if told := s.told.Load(); told != nil {
		return *told
	}
	return report.ServingUnknown()
}
