package timeline

import (
	"cmp"
	"time"

	"rekindle.edge/api/v1alpha1"
)

// Bounds of Recovery.slowestPods and Recovery.heldPods.
const (
	maxSlowest = 5
	maxHeld    = 5
)

// answerGrace is how long after kubelet is up the API server may answer first and still
// count as there when the node started: carrier, address and TLS take their time.
const answerGrace = 5 * time.Second

// Close makes the record of a boot that goes on: complete, or incomplete because its time
// is up. Down is the length of the outage, nil if it is not known.
func (s State) Close(down *time.Duration) v1alpha1.Recovery {
	record := s.record(down)
	if len(s.Expected) > int(record.ReadyPods) || (len(s.Expected) == 0 && !s.KubeletUp) {
		record.Result = v1alpha1.RecoveryIncomplete
		record.IncompleteReason = s.incompleteReason()
		record.TargetMet = v1alpha1.TruthFalse
		return record
	}
	total := s.end()
	record.Result = v1alpha1.RecoveryComplete
	record.TotalMilliseconds = milliseconds(&total)
	record.TargetMet = v1alpha1.TruthFalse
	if total <= time.Duration(s.TargetSeconds)*time.Second {
		record.TargetMet = v1alpha1.TruthTrue
	}
	return record
}

// CloseRestarted makes the record of a boot that ended before its recovery did. LastSign is
// the last sign of life of that boot, as time since its kernel start. Down is the length of
// the outage before it, nil if it is not known.
func (s State) CloseRestarted(lastSign time.Duration, down *time.Duration) v1alpha1.Recovery {
	record := s.record(down)
	record.Result = v1alpha1.RecoveryIncomplete
	record.IncompleteReason = v1alpha1.IncompleteRestarted
	// Whether the target would have been kept is open, unless its time was over.
	record.TargetMet = v1alpha1.TruthUnknown
	if lastSign > time.Duration(s.TargetSeconds)*time.Second {
		record.TargetMet = v1alpha1.TruthFalse
	}
	return record
}

func (s State) record(down *time.Duration) v1alpha1.Recovery {
	record := v1alpha1.Recovery{
		BootID:              s.BootID,
		PreviousEnd:         s.PreviousEnd,
		DownMilliseconds:    milliseconds(down),
		Phases:              s.phases(),
		ExpectedPods:        int32(len(s.Expected)),
		ReadyPods:           s.readyCount(),
		NotReadyBefore:      s.NotReadyBefore,
		TargetSeconds:       s.TargetSeconds,
		ConnectivityAtStart: connectivity(s.onlineAtStart()),
		ConnectivityAtEnd:   connectivity(s.Online),
		Stages:              s.Stages,
	}
	for _, pod := range s.slowest(maxSlowest) {
		record.SlowestPods = append(record.SlowestPods, v1alpha1.PodRecovery{
			Pod: pod.Name, Milliseconds: milliseconds(pod.ReadyAt), Reason: pod.Reason, Steps: pod.Steps.record(),
		})
	}
	for _, pod := range s.Held[:min(maxHeld, len(s.Held))] {
		record.HeldPods = append(record.HeldPods, v1alpha1.HeldPod{Pod: pod.Name, Reason: pod.Reason})
	}
	return record
}

// onlineAtStart says whether the API server answered soon after kubelet was up. When nobody
// saw kubelet's health begin, its process's start stands in; without either, and for a
// server that was never heard of, the answer is no: offline is the claim that shows.
func (s State) onlineAtStart() bool {
	up := cmp.Or(s.Edges.KubeletHealthy, s.Edges.Kubelet)
	return s.FirstAnswer != nil && up != nil && *s.FirstAnswer <= *up+answerGrace
}

// end is when a complete recovery was over: the last expected pod Ready, or the last edge
// that there is if none was expected.
func (s State) end() time.Duration {
	if _, last := s.readyEdges(); last != nil {
		return *last
	}
	var end time.Duration
	for _, edge := range []*time.Duration{s.Edges.Init, s.Edges.Kubelet, s.Edges.KubeletHealthy} {
		if edge != nil {
			end = max(end, *edge)
		}
	}
	return end
}

// phases are the differences of the edges that were observed. A later edge bounds the
// earlier ones, so that the phases add up to the last edge whatever came out of order
// (kubelet may start a static pod before it serves its health endpoint).
func (s State) phases() v1alpha1.RecoveryPhases {
	firstReady, lastReady := s.readyEdges()
	if int(s.readyCount()) < len(s.Expected) {
		lastReady = nil
	}
	nodeServed, podsServed, firstSandbox := s.Edges.NodeServed, s.Edges.PodsServed, s.Edges.FirstSandbox
	if len(s.Expected) == 0 {
		// The recovery was over when kubelet was up; what came later is no part of it.
		nodeServed, podsServed, firstSandbox = nil, nil, nil
	}
	var phases v1alpha1.RecoveryPhases
	steps := []struct {
		edge  *time.Duration
		phase **int64
	}{
		{s.Edges.Init, &phases.Kernel},
		{s.Edges.Kubelet, &phases.Userspace},
		{s.Edges.KubeletHealthy, &phases.KubeletStart},
		{nodeServed, &phases.NodeList},
		{podsServed, &phases.PodList},
		{firstSandbox, &phases.FirstSandbox},
		{firstReady, &phases.FirstReady},
		{lastReady, &phases.LastReady},
	}
	var bound *int64
	ends := make([]*int64, len(steps))
	for i := len(steps) - 1; i >= 0; i-- {
		// Cut to milliseconds before the differences are taken, or they would not add up.
		end := milliseconds(steps[i].edge)
		if end == nil {
			continue
		}
		if bound != nil {
			*end = min(*end, *bound)
		}
		ends[i], bound = end, end
	}
	var begin int64
	for i, end := range ends {
		if end == nil {
			continue
		}
		phase := *end - begin
		*steps[i].phase = &phase
		begin = *end
	}
	return phases
}

func connectivity(online bool) v1alpha1.Connectivity {
	if online {
		return v1alpha1.ConnectivityOnline
	}
	return v1alpha1.ConnectivityOffline
}

// milliseconds of a duration; nil stays nil.
func milliseconds(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	ms := d.Milliseconds()
	return &ms
}

// incompleteReason says why a record that is closed now is incomplete.
func (s State) incompleteReason() string {
	if !s.Listed {
		return v1alpha1.IncompleteNoPodList
	}
	return v1alpha1.IncompletePodsNotReady
}
