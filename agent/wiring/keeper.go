package wiring

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

const (
	// lookEvery is the pace at which kubelet is looked at.
	lookEvery = 2 * time.Second
	// lookAgain is when a process that may only just have been forked is looked at again.
	lookAgain = lookEvery / 4
)

// errRestarting is the state of a kubelet that somebody has started without the agent.
var errRestarting = fmt.Errorf("kubelet ran without $%s and is restarted", argsVariable)

// Kubelet is kubelet's service.
type Kubelet interface {
	// Process gives the main process and its arguments; 0 when it does not run.
	Process(ctx context.Context) (pid int, args []string, err error)
	// Restart loads the units anew and restarts kubelet, if it runs, without waiting.
	Restart(ctx context.Context) error
}

// Keeper keeps kubelet wired while the agent serves.
type Keeper struct {
	Hook    Hook
	Kubelet Kubelet
	// Runtime is the endpoint of the container runtime that the gate stands in front of.
	Runtime string
	// Observe says that the policy wants nothing changed on the node; unset: it never does.
	Observe func() bool
	// Undecided says that Observe may soon be true although it is not; unset: it never is.
	// A kubelet that runs on its own is left alone that long.
	Undecided func() bool
	Clock     clock.Clock
	// Tell is called with each new state: nil when kubelet is wired, else why it is not.
	Tell func(error)

	made    made
	serving time.Time // since when the agent serves
	// suspect is a process that ran without the arguments when it was last looked at.
	suspect int
	// foreign is one that uses another container runtime, by its own arguments.
	foreign int
	// left is the process that was told to restart without the agent.
	left int
	// restarted says that kubelet was restarted since the hook was set.
	restarted bool
	told      *string
}

// Begin sets the hook, unless kubelet was lately restarted without the agent. It is called
// before kubelet may start.
func (k *Keeper) Begin(ctx context.Context) {
	k.serving = k.Clock.Now()
	if k.Undecided != nil && k.Undecided() {
		// Only an agent that is new to the node takes the time.
		if pid, args, err := k.Kubelet.Process(ctx); k.undecided(pid, args, err) {
			return
		}
	}
	set := k.set
	if k.observes() {
		set = k.unset
	}
	if err := set(); err != nil {
		k.tell(ctx, err)
	}
}

// Run looks at kubelet until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	timer := k.Clock.NewTimer(lookEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
		}
		suspect := k.suspect
		if state, known := k.look(ctx); known {
			k.tell(ctx, state)
		}
		next := lookEvery
		if k.suspect != suspect {
			next = lookAgain
		}
		timer.Reset(next)
	}
}

func (k *Keeper) set() error {
	if pause := k.Hook.Pause(); k.Clock.Since(k.serving) < pause {
		return fmt.Errorf("kubelet was restarted without the agent, which did not serve; it is taken back once the agent has served for %s", pause)
	}
	if err := k.Hook.set(&k.made); err != nil {
		return fmt.Errorf("kubelet cannot be wired: %w", err)
	}
	return nil
}

// look finds out whether kubelet is wired, and restarts it once if it is not.
func (k *Keeper) look(ctx context.Context) (state error, known bool) {
	if !k.Hook.IsSet() {
		k.restarted = false
	}
	pid, args, err := k.Kubelet.Process(ctx)
	if k.undecided(pid, args, err) {
		return nil, false
	}
	if k.observes() {
		return k.leave(ctx, pid, args, k.unset)
	}
	if err == nil && pid != 0 {
		if other := k.Hook.RuntimeMatches(args, k.Runtime); other != nil {
			return k.leave(ctx, pid, args, func() error { return errors.Join(other, k.Hook.Unset()) })
		}
	}
	k.foreign, k.left = 0, 0
	if err := k.set(); err != nil {
		return err, true
	}
	switch {
	case err != nil:
		return fmt.Errorf("kubelet cannot be looked at: %w", err), true
	case pid == 0:
		return nil, false
	case k.Hook.Wired(args):
		k.suspect = 0
		return nil, true
	case k.suspect != pid:
		// A process that systemd has only just forked still shows systemd's arguments.
		k.suspect = pid
		return nil, false
	case !k.restarted:
		k.restarted = true
		logr.FromContextOrDiscard(ctx).Info("Restarting kubelet, which runs without the agent", "pid", pid)
		return errors.Join(errRestarting, k.Kubelet.Restart(ctx)), true
	}
	return fmt.Errorf("kubelet runs without $%s although it was restarted: something has changed its unit (systemctl cat kubelet); run rekindle-agent install again", argsVariable), true
}

// undecided says whether a kubelet that runs on its own is left alone for now.
func (k *Keeper) undecided(pid int, args []string, err error) bool {
	return k.Undecided != nil && k.Undecided() && err == nil && pid != 0 && !k.Hook.Wired(args)
}

// ErrObserve is why kubelet is not wired while the policy's mode is Observe.
var ErrObserve = errors.New("the policy's mode is Observe, which changes nothing on the node")

func (k *Keeper) observes() bool { return k.Observe != nil && k.Observe() }

func (k *Keeper) unset() error { return errors.Join(ErrObserve, k.Hook.Leave()) }

// leave gives a kubelet back to itself: one whose container runtime is another one than the
// gate's, where its pods would be looked for, and made, in the wrong one; or one that the
// policy wants left alone. Its pods run on.
func (k *Keeper) leave(ctx context.Context, pid int, args []string, unset func() error) (state error, known bool) {
	if k.foreign != pid {
		// A process that systemd has only just forked still shows systemd's arguments.
		k.foreign = pid
		return nil, false
	}
	why := unset()
	if k.Hook.Wired(args) && k.left != pid {
		k.left = pid
		logr.FromContextOrDiscard(ctx).Info("Restarting kubelet without the agent", "pid", pid, "reason", why.Error())
		why = errors.Join(why, k.Kubelet.Restart(ctx))
	}
	return why, true
}

func (k *Keeper) tell(ctx context.Context, state error) {
	message := ""
	if state != nil {
		message = state.Error()
	}
	if k.told != nil && *k.told == message {
		return
	}
	k.told = &message
	log := logr.FromContextOrDiscard(ctx)
	if state != nil {
		log.Info("Kubelet is not wired", "reason", message)
	} else {
		log.Info("Kubelet is wired")
	}
	k.Tell(state)
}
