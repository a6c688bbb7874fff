package install

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"rekindle.edge/agent/config"
)

// Units of the agent that run.
const (
	agentUnit  = "rekindle-agent.service"
	socketUnit = "rekindle-agent.socket"
	timerUnit  = "rekindle-unhook.timer"
)

// socketPath is where the sockets are described.
const socketPath = unitDir + "/" + socketUnit

// Node is the running node, apart from the files that are written.
type Node interface {
	// Suits says why the agent cannot be installed here, nil if it can.
	Suits(ctx context.Context) error
	// Systemctl runs one command of it.
	Systemctl(ctx context.Context, args ...string) error
	// Verify says what systemd finds wrong with the agent's units.
	Verify(ctx context.Context, units ...string) error
	// Kubelet is how kubelet does now.
	Kubelet(ctx context.Context) Kubelet
	// Unhook makes kubelet's next start its own again and takes the agent's traces in
	// the running system away.
	Unhook() error
}

// Kubelet is how kubelet does.
type Kubelet struct {
	// Running says that it has a process, Wired that this talks to the local API and the gate, Healthy
	// that its health endpoint answers well.
	Running, Wired, Healthy bool
	// Hooked says that it is wired when it starts next, Left that the agent leaves it alone, by
	// the mode of the node's policy. A new agent may need to hear of one first.
	Hooked, Left bool
	// Lease is the node's lease as the API server has it, empty if it cannot be read: it
	// changes when kubelet reaches the API server.
	Lease string
}

// Installer installs and uninstalls.
type Installer struct {
	Node     Node
	Root     string
	Settings config.Config
	// Binary is the agent's own program.
	Binary []byte
	// Patience is how long kubelet may take to be well again.
	Patience time.Duration
	// Say reports progress.
	Say func(format string, args ...any)
}

// original is the node as it was before the first install, pending as it was before a
// transaction that has not ended.
func (i Installer) original() string { return i.stateDir("install/original") }
func (i Installer) pending() string  { return i.stateDir("install/pending") }
func (i Installer) stateDir(name string) string {
	return filepath.Join(i.Root, i.Settings.StateDir, name)
}

// Install brings the agent of this program onto the node, or leaves the node as it was.
func (i Installer) Install(ctx context.Context) error {
	if err := i.Node.Suits(ctx); err != nil {
		return fmt.Errorf("not installed, nothing was changed: %w", err)
	}
	if err := i.rollBackLeftovers(ctx); err != nil {
		return err
	}
	files, err := wanted(i.Binary, i.Settings)
	if err != nil {
		return err
	}
	changed, err := differing(i.Root, files)
	if err != nil {
		return err
	}
	if len(changed) == 0 && i.Node.Systemctl(ctx, "is-active", "--quiet", agentUnit) == nil {
		i.Say("already installed, nothing to change")
		return nil
	}
	before := i.Node.Kubelet(ctx)
	pending, err := save(i.Root, i.pending(), paths(files))
	if err != nil {
		return fmt.Errorf("not installed, nothing was changed: %w", err)
	}
	if err := i.apply(ctx, changed, before); err != nil {
		i.Say("rolling back")
		return errors.Join(fmt.Errorf("not installed: %w", err), i.rollBack(context.WithoutCancel(ctx), pending))
	}
	return i.commit(pending)
}

func (i Installer) apply(ctx context.Context, changed []file, before Kubelet) error {
	for _, f := range changed {
		i.Say("writing %s", f.path)
		if err := f.write(i.Root); err != nil {
			return err
		}
	}
	if err := i.Node.Systemctl(ctx, "daemon-reload"); err != nil {
		return err
	}
	if err := i.Node.Verify(ctx, agentUnit, socketUnit, timerUnit, "rekindle-unhook.service", "rekindle-retry.service", "rekindle-early.service"); err != nil {
		return err
	}
	i.Say("starting the agent")
	if err := i.start(ctx, slices.Contains(paths(changed), socketPath)); err != nil {
		return err
	}
	if !before.Running {
		i.Say("kubelet does not run; it is wired when it starts")
		return nil
	}
	if !before.Wired && i.decided(ctx).Hooked {
		i.Say("restarting kubelet, pods run on")
		if err := i.Node.Systemctl(ctx, "restart", i.Settings.KubeletUnit); err != nil {
			return err
		}
	}
	return i.wait(ctx, func(now Kubelet) error {
		switch {
		case now.Left && now.Running && (now.Healthy || !before.Healthy):
			i.Say("the node's policy only observes: kubelet is left as it is")
			return nil
		case !now.Running || !now.Wired:
			return errors.New("kubelet does not run with the agent's arguments")
		case before.Healthy && !now.Healthy:
			return errors.New("kubelet is not healthy")
		case before.Lease != "" && now.Lease == before.Lease:
			return errors.New("kubelet does not renew its lease through the local API")
		}
		return nil
	})
}

// start the agent anew. Its sockets stay open over that, unless they have changed: systemd
// opens none while the agent runs.
func (i Installer) start(ctx context.Context, sockets bool) error {
	if sockets {
		// Together: a connection would start the agent again. A unit that is not there is
		// none to stop.
		_ = i.Node.Systemctl(ctx, "stop", socketUnit, agentUnit)
	}
	if err := i.Node.Systemctl(ctx, "start", socketUnit); err != nil {
		return err
	}
	return i.Node.Systemctl(ctx, "restart", agentUnit)
}

// decided waits until the agent knows whether it wires kubelet, for half of the patience at most.
func (i Installer) decided(ctx context.Context) (now Kubelet) {
	i.Patience /= 2
	_ = i.wait(ctx, func(k Kubelet) error {
		if now = k; k.Hooked || k.Left {
			return nil
		}
		return errors.New("the agent has not decided")
	})
	return now
}

// wait until kubelet is as wanted.
func (i Installer) wait(ctx context.Context, wrong func(Kubelet) error) error {
	ctx, cancel := context.WithTimeout(ctx, i.Patience)
	defer cancel()
	for {
		err := wrong(i.Node.Kubelet(ctx))
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w after %s; see journalctl -u %s -u %s", err, i.Patience, i.Settings.KubeletUnit, agentUnit)
		case <-time.After(min(i.Patience/10, time.Second/2)):
		}
	}
}

// commit keeps what the node was before the first install, for Uninstall.
func (i Installer) commit(pending *saved) error {
	original, err := openSaved(i.Root, i.original())
	if err != nil {
		return err
	}
	if original == nil {
		return pending.moveTo(i.original())
	}
	if err := original.adopt(pending); err != nil {
		return err
	}
	return pending.discard(false)
}

func (i Installer) rollBackLeftovers(ctx context.Context) error {
	pending, err := openSaved(i.Root, i.pending())
	if err != nil || pending == nil {
		return err
	}
	i.Say("an earlier run was interrupted, rolling back what it left")
	return i.rollBack(ctx, pending)
}

// rollBack makes the node what it was before the transaction.
func (i Installer) rollBack(ctx context.Context, pending *saved) error {
	original, err := openSaved(i.Root, i.original())
	if err != nil {
		return err
	}
	if original == nil {
		err = i.takeOut(ctx, pending)
	} else {
		// The agent of before may have given kubelet other arguments. Pods run on.
		err = errors.Join(pending.restore(), i.Node.Systemctl(ctx, "daemon-reload"), i.start(ctx, true),
			i.Node.Systemctl(ctx, "try-restart", i.Settings.KubeletUnit))
	}
	if err != nil {
		return fmt.Errorf("rolling back: %w; run the command again", err)
	}
	return pending.discard(original == nil)
}

// Uninstall makes the node what it was before the first install.
func (i Installer) Uninstall(ctx context.Context) error {
	if err := i.rollBackLeftovers(ctx); err != nil {
		return err
	}
	before, err := openSaved(i.Root, i.original())
	if err != nil {
		return err
	}
	if before == nil {
		if !exists(filepath.Join(i.Root, unitDir, agentUnit)) {
			i.Say("not installed, nothing to change")
			return nil
		}
		// The state directory is lost. All that has the agent's names is the agent's.
		files, err := wanted(nil, i.Settings)
		if err != nil {
			return err
		}
		before = absent(i.Root, i.original(), i.stateDir(""), paths(files))
	}
	if err := i.takeOut(ctx, before); err != nil {
		return fmt.Errorf("not all was taken out: %w; run the command again", err)
	}
	return before.discard(true)
}

// takeOut stops the agent, restores files and gives kubelet back to itself.
func (i Installer) takeOut(ctx context.Context, before *saved) error {
	i.Say("stopping the agent")
	wired := i.Node.Kubelet(ctx).Wired
	// A unit that is not there is none to stop.
	_ = i.Node.Systemctl(ctx, "stop", socketUnit, agentUnit)
	_ = i.Node.Systemctl(ctx, "stop", timerUnit)
	err := errors.Join(i.Node.Unhook(), before.restore(), i.Node.Systemctl(ctx, "daemon-reload"))
	if err != nil || !wired {
		return err
	}
	i.Say("restarting kubelet, pods run on")
	if err := i.Node.Systemctl(ctx, "restart", i.Settings.KubeletUnit); err != nil {
		return err
	}
	return i.wait(ctx, func(now Kubelet) error {
		if !now.Running || now.Wired || !now.Healthy {
			return errors.New("kubelet is not healthy on its own")
		}
		return nil
	})
}
