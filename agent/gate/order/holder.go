package order

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"rekindle.edge/api/v1alpha1"
)

// planTime is how long the first calls wait for the agent to know what it is to do. Without
// a plan they pass.
const planTime = 3 * time.Second

// heldEvery is how often it is asked which pods are held back elsewhere.
const heldEvery = time.Second

// Options of a Holder.
type Options struct {
	Log logr.Logger
	// Boot is the time since kernel start.
	Boot func() time.Duration
	// Wall is the clock that kubelet goes by. Unset: no pod's activeDeadlineSeconds are looked at.
	Wall func() time.Time
	// BootID is the kernel's id of this boot. Unset: nothing is held.
	BootID string
	// Dir is the directory in /run for what outlives a restart of the agent.
	Dir string
	// Parallel is how many sandboxes are made at once where no policy says so, 2 at least.
	Parallel int
	// NetworkReady says whether the runtime can give pods a network. Unset, or an error: it
	// can, as far as anybody knows.
	NetworkReady func(context.Context) (bool, error)
	// Manifests changes whenever the manifests of static pods do. Unset: nobody looks.
	Manifests func() string
	// HeldBack are the UIDs of pods that are held back elsewhere: no stage waits for them.
	// Unset: none.
	HeldBack func() []string
}

// Holder holds RunPodSandbox calls until it is their turn. All its state is under one lock.
type Holder struct {
	Options
	started time.Duration

	mu sync.Mutex
	// planner is nil until there is a plan.
	planner *planner
	// running are containers that were started in this boot.
	running map[string]bool
	// passing: nothing is held.
	passing bool
	// decided is closed when there is a planner with a list of pods, or passing is true.
	decided chan struct{}
	decide  func()
	// stopping: the agent ends.
	stopping bool
	timer    *time.Timer
	// askedHeld is when HeldBack was last asked.
	askedHeld time.Duration
	// networkGood is when pods were last seen to get a network.
	networkGood time.Duration
	// opened is Begin's. told counts the ends of stages that were logged; news is what it was not told yet,
	// telling that somebody is at it.
	opened  func([]v1alpha1.StageRecovery)
	told    int
	news    []v1alpha1.StageRecovery
	telling bool
}

// New makes a holder that waits, for a short time, for a plan. One whose boot has already
// come back holds nothing.
func New(options Options) *Holder {
	h := &Holder{Options: options, decided: make(chan struct{}), running: map[string]bool{}, started: options.Boot()}
	h.decide = sync.OnceFunc(func() { close(h.decided) })
	kept, err := loadState(h.Dir, h.BootID)
	if err != nil {
		h.Log.Error(err, "Whether this boot's start is over is not known, pods start as kubelet asks")
	}
	if err != nil || kept.Over || h.BootID == "" {
		h.passing = true
		h.decide()
	}
	return h
}

// Begin gives the plan: the order of a node that comes back, and which pods, by
// namespace/name, were Ready before it restarted. An order that cannot be read holds
// nothing. Opened, unless it is nil, is told of the stages of this boot whenever there
// is another, or one has ended; it may wait.
func (h *Holder) Begin(ordering v1alpha1.StartupOrdering, wellBefore []string, opened func([]v1alpha1.StageRecovery)) {
	groups, total, err := groupsOf(ordering, h.Parallel)
	if err != nil {
		h.Log.Error(err, "Start-up order cannot be used, pods start as kubelet asks; correct the policy")
		h.Pass()
		return
	}
	h.do(func(now time.Duration) {
		if h.passing || h.planner != nil {
			return
		}
		kept, err := loadState(h.Dir, h.BootID)
		if err != nil {
			h.Log.Error(err, "Order of this boot's start begins anew")
		}
		h.planner = newPlanner(groups, total, kept, h.running, now)
		h.planner.wellBefore = map[string]bool{}
		for _, pod := range wellBefore {
			h.planner.wellBefore[pod] = true
		}
		h.opened, h.told = opened, len(h.planner.state.Opened)
	})
}

// Pass ends the order: whatever is held goes on, and nothing is held any more in this boot.
func (h *Holder) Pass() {
	h.do(func(time.Duration) {
		if h.passing {
			return
		}
		h.passing = true
		over := &state{BootID: h.BootID}
		h.decide()
		if h.planner != nil {
			over = &h.planner.state
		}
		over.Over = true
		h.save(over)
	})
}

// Stop answers everything that is held, and that is still to come: the agent ends.
func (h *Holder) Stop() {
	h.do(func(time.Duration) {
		h.stopping = true
		h.revoke(func(*call) bool { return true }, "the agent is stopping")
	})
}

// ShuttingDown lets everything go that is held: the node shuts down.
func (h *Holder) ShuttingDown() {
	h.do(func(time.Duration) { h.revoke(func(*call) bool { return true }, "the node shuts down") })
}

// Ended lets a pod go that kubelet itself has ended, which the list does not tell while its
// call is held.
func (h *Holder) Ended(uid, why string) {
	h.do(func(time.Duration) { h.revoke(func(c *call) bool { return c.pod.uid == uid }, why) })
}

// ContainerStarted is told of every container that was started in this boot.
func (h *Holder) ContainerStarted(id string) {
	h.do(func(time.Duration) { h.running[id] = true })
}

func (h *Holder) revoke(which func(*call) bool, why string) {
	if h.planner == nil {
		return
	}
	for c := range h.planner.calls {
		if which(c) {
			c.revoked = why
		}
	}
}

// do changes something, and carries out what follows from it. What goes wrong in here must
// not keep a pod from starting.
func (h *Holder) do(change func(now time.Duration)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer func() {
		if problem := recover(); problem != nil {
			h.Log.Error(fmt.Errorf("panic: %v", problem), "Order of the start has failed, pods start as kubelet asks", "stack", string(debug.Stack()))
			h.giveUp()
		}
	}()
	change(h.Boot())
	h.step()
}

// giveUp lets everything go on, whatever state things are in.
func (h *Holder) giveUp() {
	h.passing = true
	h.decide()
	if h.planner == nil {
		return
	}
	for c := range h.planner.calls {
		c.end(nil)
	}
	h.planner = nil
}

func (h *Holder) step() {
	p := h.planner
	if p == nil {
		return
	}
	now := h.Boot()
	if h.HeldBack != nil && now >= h.askedHeld+heldEvery {
		h.askedHeld = now
		p.heldBack = h.HeldBack()
	}
	if h.Wall != nil {
		p.zero = h.Wall().Add(-now)
	}
	d := p.step(now)
	for c, err := range d.refuse {
		c.end(err)
	}
	for _, c := range d.release {
		c.end(nil)
	}
	if d.changed {
		h.save(&p.state)
		h.tell()
	}
	if p.state.Over && !h.passing {
		h.passing = true
		h.Log.Info("Pods of this boot have started, nothing is held any more")
	}
	if h.passing && len(p.calls) == 0 {
		h.planner = nil // with all that it remembers of pods
	}
	if h.timer != nil {
		h.timer.Stop()
		h.timer = nil
	}
	if d.wake != 0 && h.HeldBack != nil {
		d.wake = min(d.wake, now+heldEvery)
	}
	if d.wake != 0 {
		h.timer = time.AfterFunc(max(d.wake-now, time.Millisecond), func() { h.do(func(time.Duration) {}) })
	}
}

// save is told but not waited for by anybody: a restarted agent then knows less.
func (h *Holder) save(s *state) {
	if err := s.save(h.Dir); err != nil {
		h.Log.Error(err, "Order of this boot's start cannot be noted, an agent that is restarted now begins it anew")
	}
}

// tell people, and the record, how far the stages are.
func (h *Holder) tell() {
	s := &h.planner.state
	for ; h.told < len(s.Opened); h.told++ {
		if h.told > 0 {
			before := s.Opened[h.told-1]
			h.Log.Info("Stage is not waited for any longer", "stage", before.Name, "result", before.Result, "pod", before.WaitedFor)
		}
		h.Log.Info("Stage is open", "stage", s.Opened[h.told].Name)
	}
	if h.opened == nil {
		return
	}
	h.news = s.record()
	if h.telling {
		return
	}
	h.telling = true
	go func() {
		for {
			h.mu.Lock()
			news := h.news
			h.news, h.telling = nil, news != nil
			h.mu.Unlock()
			if news == nil {
				return
			}
			h.opened(news)
		}
	}()
}
