package daemon

import (
	"fmt"

	"rekindle.edge/agent/timeline"
	"rekindle.edge/api/v1alpha1"
)

// watchHolding tells the tracker which pods are held, and wakes the reporter when there is
// something else to tell of it.
func (l *loop) watchHolding() {
	if l.holding == nil {
		return
	}
	if l.tracker != nil {
		held := timeline.PodsHeld{}
		for _, pod := range l.holding.Pods() {
			held.Pods = append(held.Pods, timeline.Held{Key: pod.UID, Name: pod.Name, Reason: v1alpha1.ReasonAttachedVolumeNotSynced})
		}
		l.observe(held)
	}
	if told := fmt.Sprint(l.holding.Findings()); told != l.held {
		l.held = told
		l.signal()
	}
}
