package timeline

import (
	"time"

	"rekindle.edge/api/v1alpha1"
)

// Step is a kind of call that kubelet makes to start a pod.
type Step int

// In the order in which kubelet makes them.
const (
	StepSandbox Step = iota
	StepPull
	StepCreate
	StepStart
	stepCount
)

// Steps are what was seen of a pod's calls, all attempts together.
type Steps struct {
	// Asked is when kubelet first asked for the sandbox, Started when a container was last
	// started, as time since kernel start.
	Asked   time.Duration `json:"asked"`
	Started time.Duration `json:"started,omitempty"`
	// Held is how long the agent kept calls, Runtime how long the container runtime took,
	// by Step.
	Held    time.Duration            `json:"held,omitempty"`
	Runtime [stepCount]time.Duration `json:"runtime"`
}

// CallEnded is a call of kubelet's for a pod that was answered.
type CallEnded struct {
	// Key is the pod's, as in Pod.
	Key  string
	Step Step
	// Began and Ended are when kubelet called and was answered, Runtime how long the container
	// runtime took of that.
	Began, Ended, Runtime time.Duration
}

// apply never asks for the record to be stored: a pod makes many calls, and the next edge
// stores them all.
func (e CallEnded) apply(t *Tracker) bool {
	pod, expected := t.state.Expected[e.Key]
	if !expected || pod.ReadyAt != nil {
		return false
	}
	steps := Steps{Asked: e.Began}
	if pod.Steps != nil {
		steps = *pod.Steps
	} else if e.Step != StepSandbox {
		return false // of a sandbox that was not seen, as after a restart of kubelet alone
	}
	steps.Held += e.Ended - e.Began - e.Runtime
	steps.Runtime[e.Step] += e.Runtime
	if e.Step == StepStart {
		steps.Started = e.Ended
	}
	pod.Steps = &steps
	t.state.Expected[e.Key] = pod
	return false
}

// record gives the steps as they are reported. What nobody else took of the time until the
// last container was started, kubelet did.
func (s *Steps) record() *v1alpha1.PodSteps {
	if s == nil {
		return nil
	}
	steps := &v1alpha1.PodSteps{
		Held:    s.Held.Milliseconds(),
		Sandbox: s.Runtime[StepSandbox].Milliseconds(),
		Pull:    s.Runtime[StepPull].Milliseconds(),
		Create:  s.Runtime[StepCreate].Milliseconds(),
		Start:   s.Runtime[StepStart].Milliseconds(),
	}
	if s.Started > 0 {
		left := s.Started - s.Asked - s.Held
		for _, took := range s.Runtime {
			left -= took
		}
		steps.Kubelet = max(0, left).Milliseconds()
	}
	return steps
}
