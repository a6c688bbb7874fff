package main

import (
	"context"
	"fmt"
	"time"

	"rekindle.edge/test/edgenode"
)

const (
	agentInNode = "/usr/local/bin/rekindle-agent"
	// installedDisk is savedDisk with the agent installed.
	installedDisk = "installed"
	// firstDisk is the disk that both are made from.
	firstDisk = "first"
	// mirrorTime is more than the agent takes to have everything on the disk.
	mirrorTime = 8 * time.Second
)

// rekindleOffline is a node with the agent that is cut off.
var rekindleOffline = benchCase{
	name:    "rekindle-offline",
	prepare: func(ctx context.Context, r *rig) error { return r.node.CutWAN(ctx, r.wan) },
	disk:    installedDisk,
	limit:   time.Minute,
	offline: true,
	ready:   all,
}

// rekindleOnline is a node with the agent that has the API server in reach.
var rekindleOnline = benchCase{
	name:    "rekindle-online",
	prepare: func(ctx context.Context, r *rig) error { return r.node.RestoreWAN(ctx) },
	disk:    installedDisk,
	limit:   2 * time.Minute,
	ready:   all,
}

// makeDisks makes the installed disk, and a saved disk that has been through as many boots,
// so that both hold as many sandboxes of earlier ones. The node is off and has the disk of
// its first boot.
func (r *rig) makeDisks(ctx context.Context, installed bool) error {
	if !installed {
		return r.node.SaveDisk(ctx, savedDisk)
	}
	if err := r.node.SaveDisk(ctx, firstDisk); err != nil {
		return err
	}
	r.log("installing the agent")
	err := r.makeDisk(ctx, installedDisk, func() error {
		if output, err := r.node.Exec(ctx, agentInNode, "install"); err != nil {
			return fmt.Errorf("install: %w: %s", err, output)
		}
		if err := r.settle(ctx); err != nil {
			return err
		}
		time.Sleep(mirrorTime)
		return nil
	})
	if err != nil {
		return err
	}
	if err := r.node.RestoreDisk(ctx, firstDisk); err != nil {
		return err
	}
	return r.makeDisk(ctx, savedDisk, func() error { return nil })
}

// makeDisk saves the disk of a node that lost its power after it was changed and served.
func (r *rig) makeDisk(ctx context.Context, name string, change func() error) (err error) {
	if _, err := r.node.Boot(ctx); err != nil {
		return err
	}
	// The API server has the pods Ready as of the boot before; kubelet starts them anew.
	if err := r.node.WaitReady(ctx); err != nil {
		return err
	}
	time.Sleep(mirrorTime)
	if err := r.settle(ctx); err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	if r.stale, err = r.countSandboxes(ctx); err != nil {
		return err
	}
	if _, err := r.node.Exec(ctx, "sync"); err != nil {
		return err
	}
	if err := r.node.PowerCut(ctx); err != nil {
		return err
	}
	return r.node.SaveDisk(ctx, name)
}

// options of the node: with the agent's program if a case needs it.
func nodeOptions(c config, log func(string, ...any)) edgenode.Options {
	options := edgenode.Options{Name: nodeName, Kubelet: c.kubelet, Log: log}
	if c.installed() {
		options.Agent = &edgenode.Agent{Binary: c.agent}
	}
	return options
}

// installed says whether a case needs the agent.
func (c config) installed() bool {
	for _, bench := range c.cases {
		if bench.disk == installedDisk {
			return true
		}
	}
	return false
}
