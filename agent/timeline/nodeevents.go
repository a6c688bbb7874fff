package timeline

import "time"

// InitStarted is the start of PID 1.
type InitStarted struct{ At time.Duration }

func (e InitStarted) apply(t *Tracker) bool { return first(&t.state.Edges.Init, e.At) }

// KubeletStarted is the start of a kubelet process; the first of a boot counts.
type KubeletStarted struct{ At time.Duration }

func (e KubeletStarted) apply(t *Tracker) bool { return first(&t.state.Edges.Kubelet, e.At) }

// KubeletHealthy is the first answer of kubelet's health endpoint.
type KubeletHealthy struct {
	At time.Duration
	// Late: it answered the first time it was asked. Since when, nobody saw.
	Late bool
}

func (e KubeletHealthy) apply(t *Tracker) bool {
	if t.state.KubeletUp {
		return false
	}
	t.state.KubeletUp = true
	if !e.Late {
		first(&t.state.Edges.KubeletHealthy, e.At)
	}
	return true
}

// NodeServed is the moment when kubelet was first given its Node in this boot.
type NodeServed struct{ At time.Duration }

func (e NodeServed) apply(t *Tracker) bool { return first(&t.state.Edges.NodeServed, e.At) }

// PodsServed is the moment when kubelet was first given the list of its pods in this boot.
type PodsServed struct{ At time.Duration }

func (e PodsServed) apply(t *Tracker) bool { return first(&t.state.Edges.PodsServed, e.At) }

// SandboxReady is a pod sandbox of this boot that is ready.
type SandboxReady struct {
	ID string
	At time.Duration
	// Listed: it was found ready in a list, and At is a guess.
	Listed bool
}

func (e SandboxReady) apply(t *Tracker) bool {
	edge, estimated := t.state.Edges.FirstSandbox, t.state.SandboxEstimated
	switch {
	case edge == nil:
	case e.Listed && estimated == "":
		return false // a guess is no better than what was seen
	case !e.Listed && estimated == e.ID:
	case *edge <= e.At:
		return false
	}
	t.state.Edges.FirstSandbox = &e.At
	t.state.SandboxEstimated = ""
	if e.Listed {
		t.state.SandboxEstimated = e.ID
	}
	return true
}

// ContainerRunning is a container that was seen running in this boot.
type ContainerRunning struct{ ID string }

func (e ContainerRunning) apply(t *Tracker) bool {
	if t.running[e.ID] {
		return false
	}
	t.running[e.ID] = true
	changed := false
	for key := range t.claims {
		changed = t.confirm(key) || changed
	}
	return changed
}

// Answered says whether a request to the API server was answered.
type Answered struct {
	At     time.Duration
	Online bool
}

func (e Answered) apply(t *Tracker) bool {
	changed := e.Online != t.state.Online
	t.state.Online = e.Online
	if e.Online && t.state.FirstAnswer == nil {
		t.state.FirstAnswer = &e.At
		changed = true
	}
	return changed
}

// TargetSet is a new target of the node.
type TargetSet struct{ Seconds int32 }

func (e TargetSet) apply(t *Tracker) bool {
	changed := t.state.TargetSeconds != e.Seconds
	t.state.TargetSeconds = e.Seconds
	return changed
}

// first sets an edge that is not set yet.
func first(edge **time.Duration, at time.Duration) bool {
	if *edge != nil {
		return false
	}
	*edge = &at
	return true
}
