package order

import (
	"maps"
	"slices"
	"time"
)

// tryEvery is how often a pod tries whether there is a network again.
const tryEvery = 500 * time.Millisecond

// askTime is more than the runtime takes to say whether there is a network.
const askTime = 100 * time.Millisecond

// turns are the calls of an open group whose turn it is.
func (p *planner) turns(group int, now time.Duration) []*call {
	if p.state.Over {
		return p.everyone(group, now)
	}
	var queue []*call
	busy := 0
	for c := range p.calls {
		if c.pod.group != group {
			continue
		}
		switch {
		case c.phase == waiting:
			queue = append(queue, c)
		case c.phase == making && now < c.since+slotTime:
			busy++
			p.at(c.since + slotTime)
		}
	}
	slices.SortFunc(queue, func(a, b *call) int { return byImportance(a.pod, b.pod) })
	if len(queue) == 0 {
		return nil
	}
	gathered := p.gathered(group, now)
	missing := p.missing(group, now)
	var released []*call
	for _, c := range queue {
		// Slots are kept for those who come before it and are about to arrive.
		kept := 0
		if !gathered {
			kept, _ = slices.BinarySearchFunc(missing, c.pod, byImportance)
		}
		if busy+kept >= p.limit(group) {
			break
		}
		if !p.mayTry(c, now) {
			continue
		}
		p.start(c, now)
		released = append(released, c)
		busy++
		p.at(now + slotTime)
	}
	return released
}

// limit is how many sandboxes of a group are made at once.
func (p *planner) limit(group int) int {
	g := p.groups[group]
	if len(p.running) < g.atFirst {
		return g.atFirst
	}
	return g.parallel
}

func (p *planner) everyone(group int, now time.Duration) []*call {
	released := slices.Collect(maps.Keys(p.calls))
	released = slices.DeleteFunc(released, func(c *call) bool { return c.phase != waiting || c.pod.group != group })
	slices.SortFunc(released, func(a, b *call) int { return byImportance(a.pod, b.pod) })
	for _, c := range released {
		p.start(c, now)
	}
	return released
}

func (p *planner) start(c *call, now time.Duration) {
	c.phase, c.since = making, now
	if !c.pod.hostNetwork {
		p.triedAt = now
	}
}

// mayTry says whether a sandbox may be made as far as the network goes. While that fails,
// one pod at a time tries: it costs as much as a start does, and whoever brings the network
// needs the processor.
func (p *planner) mayTry(c *call, now time.Duration) bool {
	if !p.noNetwork || c.pod.hostNetwork {
		return true
	}
	for other := range p.calls {
		if other.phase == making && !other.pod.hostNetwork {
			return false
		}
	}
	if now < p.triedAt+tryEvery {
		p.at(p.triedAt + tryEvery)
		return false
	}
	return true
}

// gathered says whether those who are about to arrive have had their time.
func (p *planner) gathered(group int, now time.Duration) bool {
	first, ok := p.firstCall[p.groups[group].name]
	if !ok {
		first = now
		p.firstCall[p.groups[group].name] = now
	}
	if now >= first+gatherTime {
		return true
	}
	p.at(first + gatherTime)
	return false
}

// missing are the pods of a group that are not in the queue yet, the most important first.
func (p *planner) missing(group int, now time.Duration) []*pod {
	asked := map[name]bool{}
	for c := range p.calls {
		// One that only asks whether there is a network will be in a moment.
		asked[c.pod.name] = c.phase != offline || now >= c.since+askTime
	}
	return slices.DeleteFunc(p.members(group), func(pod *pod) bool {
		return pod.never() || asked[pod.name] || p.made[pod.name] || pod.started(p.running)
	})
}

// stepsOf counts how far pods have got, to see whether any of them gets further.
func (p *planner) stepsOf(group int) int {
	asked := map[name]phase{}
	for c := range p.calls {
		asked[c.pod.name] = c.phase
	}
	steps := 0
	count := func(yes bool) {
		if yes {
			steps++
		}
	}
	for _, pod := range p.members(group) {
		phase, calls := asked[pod.name]
		count(calls || p.made[pod.name])
		count(p.made[pod.name] || calls && phase == making)
		for _, id := range pod.containers {
			count(p.running[id])
		}
		count(pod.ready && pod.started(p.running))
		if p.reached[pod.name] || pod.never() {
			steps += 100
		}
	}
	return steps
}

// stuck says whether no pod of the open group has got further for a while.
func (p *planner) stuck(group int, now time.Duration) bool {
	if steps := p.stepsOf(group); steps > p.steps {
		p.steps, p.stepAt = steps, now
	}
	if now >= p.stepAt+stuckTime {
		return true
	}
	p.at(p.stepAt + stuckTime)
	return false
}
