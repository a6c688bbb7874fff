package order

import (
	"maps"
	"slices"
	"time"
)

const (
	// slotTime is how long a sandbox in the making keeps others from being made. One that
	// takes longer waits for something, as for the network, and not for a processor.
	slotTime = 5 * time.Second
	// gatherTime is how long the first calls of a group wait for those of more important
	// pods, which kubelet makes within a few hundred milliseconds of each other.
	gatherTime = 250 * time.Millisecond
)

// phase of a call.
type phase int

const (
	// waiting for its turn.
	waiting phase = iota
	// making: the runtime has it.
	making
	// offline: it waits for the pod network, and for nothing else.
	offline
)

// call is one RunPodSandbox.
type call struct {
	pod   *pod // as it was when the call came; of a static pod, as the call describes it
	phase phase
	// since it is in its phase.
	since time.Duration
	// deadline by which it must be answered, 0 if there is none.
	deadline time.Duration
	// mirrored: the list has had this static pod.
	mirrored bool
	// revoked is why it is not wanted any more, empty while it is.
	revoked string
	// verdict gets the end of its waiting: nil to go on.
	verdict chan error
}

// planner decides. All times are since kernel start. It is not safe for concurrent use.
type planner struct {
	groups []group
	// total is how long pods are held at most.
	total time.Duration
	// wellBefore are the pods that were Ready before the restart; nil: all. A critical pod
	// that was broken already, as a DaemonSet that never was well, must not hold every start.
	wellBefore map[string]bool
	state      state

	// listed: pods is the list that kubelet is served.
	listed bool
	pods   map[name]*pod
	// known are the UIDs of all pods that were on it.
	known    map[string]bool
	slices   map[name][]endpoint
	services map[name]service
	// running are ids of containers that were started in this boot.
	running map[string]bool

	calls map[*call]bool
	// made are the pods whose sandbox was made.
	made map[name]bool
	// noNetwork: the last attempt to give a pod a network has failed; triedAt is when the
	// last one was made since.
	noNetwork bool
	triedAt   time.Duration
	// heldBack are the UIDs of pods that are held back elsewhere.
	heldBack []string
	// zero is kernel start by the clock of kubelet, for the ends of pods; zero if nobody tells.
	zero time.Time
	// wellSince is when a pod got to where it is waited for; reached are those for whom
	// that has settled.
	wellSince map[name]time.Duration
	reached   map[name]bool
	// firstCall of each group.
	firstCall map[string]time.Duration
	// steps that the open group's pods have made, and when the last one was.
	steps     int
	stepAt    time.Duration
	lastCall  time.Duration
	nextCheck time.Duration
}

func newPlanner(groups []group, total time.Duration, kept state, running map[string]bool, now time.Duration) *planner {
	if !kept.fits(groups) {
		// Another policy; what was held was held.
		kept.Opened = nil
	}
	return &planner{
		groups: groups, total: total, state: kept,
		pods: map[name]*pod{}, known: map[string]bool{}, slices: map[name][]endpoint{}, services: map[name]service{}, running: running,
		calls: map[*call]bool{}, made: map[name]bool{}, wellSince: map[name]time.Duration{}, reached: map[name]bool{},
		firstCall: map[string]time.Duration{}, steps: -1, stepAt: now, lastCall: now,
	}
}

// put takes a pod as the list has it.
func (p *planner) put(pod *pod) {
	pod.group = p.groupOf(pod)
	if old := p.pods[pod.name]; old != nil && old.uid != pod.uid && !pod.static {
		delete(p.made, pod.name)
		delete(p.wellSince, pod.name)
		delete(p.reached, pod.name)
	}
	p.pods[pod.name] = pod
	p.known[pod.uid] = true
}

// list takes the whole list.
func (p *planner) list(pods []*pod) {
	names := map[name]bool{}
	for _, pod := range pods {
		p.put(pod)
		names[pod.name] = true
	}
	maps.DeleteFunc(p.pods, func(n name, _ *pod) bool { return !names[n] })
	p.listed = true
}

// decision is what follows from a step.
type decision struct {
	// release are calls whose turn it is; refuse are those that end, and why.
	release []*call
	refuse  map[*call]error
	// changed: the state is another one.
	changed bool
	// wake is when to look again if nothing happens before, 0 for never.
	wake time.Duration
}

// holds says whether a call is the order's business: it is of a pod that kubelet was served
// or that is static, and the start is not over.
func (p *planner) holds(c *call) bool {
	if p.state.Over || !p.listed {
		return false
	}
	return c.pod.static || p.known[c.pod.uid]
}

// step decides what follows at a time from all that is known.
func (p *planner) step(now time.Duration) decision {
	d := decision{refuse: map[*call]error{}}
	p.nextCheck = 0
	for c := range p.calls {
		if c.phase == making {
			continue
		}
		if err := p.letGo(c, now); err != nil {
			d.refuse[c] = err
			delete(p.calls, c)
			p.lastCall = now
		}
	}
	if p.listed {
		before := len(p.state.Opened)
		p.advance(now)
		d.changed = before != len(p.state.Opened)
		if !p.state.Over && p.isOver(now) {
			p.state.Over, d.changed = true, true
		}
	}
	for i := range p.groups {
		if i < len(p.state.Opened) || p.state.Over {
			d.release = append(d.release, p.turns(i, now)...)
		}
	}
	d.wake = p.nextCheck
	return d
}

// at asks for another step.
func (p *planner) at(t time.Duration) {
	if p.nextCheck == 0 || t < p.nextCheck {
		p.nextCheck = t
	}
}

// letGo says why a call does not wait on.
func (p *planner) letGo(c *call, now time.Duration) error {
	if c.revoked != "" {
		return refused(c.revoked)
	}
	listed := p.pods[c.pod.name]
	switch {
	case c.pod.static:
		c.mirrored = c.mirrored || listed != nil
		if c.mirrored && listed == nil && p.listed {
			return refused("the static pod's mirror is gone")
		}
	case !p.listed:
	case listed == nil:
		return refused("the pod is deleted")
	case listed.uid != c.pod.uid:
		return refused("the pod was replaced by another of its name")
	case listed.deleting:
		return refused("the pod is being deleted")
	case listed.over:
		return refused("the pod is over")
	case !listed.ends.IsZero() && !p.zero.IsZero():
		// Kubelet looks for that only when it syncs the pod anew.
		ends := listed.ends.Sub(p.zero)
		if now >= ends {
			return refused("the pod's activeDeadlineSeconds are over")
		}
		p.at(ends)
	}
	if c.deadline > 0 {
		if now >= c.deadline {
			return refused(p.why(c, now))
		}
		p.at(c.deadline)
	}
	return nil
}

// why a call waits.
func (p *planner) why(c *call, now time.Duration) string {
	if c.phase == offline {
		return "the pod network is not ready"
	}
	current := len(p.state.Opened) - 1
	if current < 0 || c.pod.group <= current {
		return "the pod waits for its turn"
	}
	text := "the pod waits for stage " + p.groups[current].name
	if left := p.notReached(current, now); len(left) > 0 {
		text += ", which waits for pod " + left[0].String()
	}
	return text
}

// groupOf is the index of a pod's group.
func (p *planner) groupOf(of *pod) int {
	return slices.IndexFunc(p.groups, func(g group) bool { return g.selects(of) })
}

// members of a group, the most important first.
func (p *planner) members(group int) []*pod {
	var members []*pod
	for _, pod := range p.pods {
		if pod.group == group {
			members = append(members, pod)
		}
	}
	slices.SortFunc(members, byImportance)
	return members
}
