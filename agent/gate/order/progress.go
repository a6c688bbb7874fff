package order

import (
	"slices"
	"time"

	"rekindle.edge/api/v1alpha1"
)

const (
	// settleTime is how long a pod must be Ready, with its endpoints served, before others
	// count on it: kube-proxy takes up to 1 s to follow.
	settleTime = time.Second
	// quietTime is how long after the last call the start is over, although there are pods
	// that never asked.
	quietTime = 30 * time.Second
)

// isOver says whether nothing is left to put in order.
func (p *planner) isOver(now time.Duration) bool {
	if len(p.state.Opened) < len(p.groups) || len(p.calls) > 0 {
		return false
	}
	if now >= p.lastCall+quietTime {
		return true
	}
	for _, pod := range p.pods {
		if !pod.never() && !p.made[pod.name] && !pod.started(p.running) {
			p.at(p.lastCall + quietTime)
			return false
		}
	}
	return true
}

// timedOut says whether a group's time is up, or that of all of them.
func (p *planner) timedOut(current int, now time.Duration) bool {
	end := min(p.state.Opened[current].At+p.groups[current].timeout, *p.state.Began+p.total)
	if now >= end {
		return true
	}
	p.at(end)
	return false
}

// advance opens the groups whose time has come.
func (p *planner) advance(now time.Duration) {
	if p.state.Over || p.state.Began == nil && len(p.calls) == 0 {
		return
	}
	if p.state.Began == nil {
		p.state.Began = &now
	}
	if len(p.state.Opened) == 0 {
		p.open(0, now)
	}
	through := 0 // the group up to which there is no waiting
	for current := len(p.state.Opened) - 1; current < len(p.groups)-1; current++ {
		left := p.notReached(current, now)
		if through <= current {
			through = p.early(current, left, now)
		}
		switch {
		case len(left) == 0:
			p.end(current, v1alpha1.StageReady, "")
		case p.timedOut(current, now):
			p.end(current, v1alpha1.StageTimedOut, left[0].String())
		case through > current:
			p.end(current, v1alpha1.StageEarly, left[0].String())
		default:
			return
		}
		p.open(current+1, now)
	}
}

func (p *planner) open(group int, now time.Duration) {
	p.state.Opened = append(p.state.Opened, opened{Name: p.groups[group].name, At: now})
	p.steps, p.stepAt = -1, now
}

func (p *planner) end(group int, result v1alpha1.StageResult, waitedFor string) {
	o := &p.state.Opened[group]
	o.Result, o.WaitedFor = result, waitedFor
}

// notReached are the pods that a group still waits for, the most important first.
func (p *planner) notReached(group int, now time.Duration) []*pod {
	var left []*pod
	for _, pod := range p.members(group) {
		if !p.hasReached(pod, p.groups[group], now) {
			left = append(left, pod)
		}
	}
	return left
}

// hasReached says whether a pod is where its group asks it to be, or will never get there.
func (p *planner) hasReached(pod *pod, g group, now time.Duration) bool {
	if pod.never() || p.reached[pod.name] || slices.Contains(p.heldBack, pod.uid) {
		return true
	}
	if g.name == groupCritical && p.wellBefore != nil && !p.wellBefore[pod.String()] {
		return true
	}
	if !pod.started(p.running) || g.ready && (!pod.ready || !reachable(pod, p.slices)) {
		delete(p.wellSince, pod.name)
		return false
	}
	if g.ready {
		since, ok := p.wellSince[pod.name]
		if !ok {
			since = now
			p.wellSince[pod.name] = now
		}
		if now < since+settleTime {
			p.at(since + settleTime)
			return false
		}
	}
	p.reached[pod.name] = true
	return true
}
