package main

import (
	"context"
	goruntime "runtime"
	"time"

	"github.com/go-logr/logr"

	"rekindle.edge/agent/config"
	"rekindle.edge/agent/cri"
	"rekindle.edge/agent/daemon"
	"rekindle.edge/agent/gate/order"
	"rekindle.edge/agent/host"
	"rekindle.edge/agent/localapi/answer"
	"rekindle.edge/agent/localapi/hold"
	"rekindle.edge/agent/wiring"
	"rekindle.edge/api/v1alpha1"
)

// processTimeout bounds the question which kubelet runs.
const processTimeout = time.Second

// sandboxesPerCore are made at once: about half of the time one waits, for the network's
// plugins, the disk, the kernel.
const sandboxesPerCore = 2

// newOrder makes what puts the start of pods in order. It holds kubelet's first calls until
// beginOrder says how.
func newOrder(log logr.Logger, settings config.Config, runtime *cri.Client, units wiring.Units, holding *hold.Holding, boot func() (string, error)) *order.Holder {
	bootID, err := boot()
	if err != nil {
		log.Error(err, "Boot id cannot be read, pods start as kubelet asks")
	}
	kubelet := wiring.Service{Unit: settings.KubeletUnit, Units: units}
	return order.New(order.Options{
		Log: log, Boot: host.SystemClock{}.Boot, Wall: host.SystemClock{}.Wall, BootID: bootID, Dir: wiring.RunDir, Parallel: sandboxesPerCore * goruntime.NumCPU(),
		NetworkReady: order.NetworkReady(runtime),
		Manifests: order.Fingerprint(func() string {
			ctx, cancel := context.WithTimeout(context.Background(), processTimeout)
			defer cancel()
			_, args, err := kubelet.Process(ctx)
			if err != nil {
				return ""
			}
			return order.ManifestDir(args)
		}),
		HeldBack: func() []string {
			var uids []string
			for _, pod := range holding.Pods() {
				uids = append(uids, pod.UID)
			}
			return uids
		},
	})
}

// beginOrder puts the start of a boot that is measured in order, until its record is closed.
func beginOrder(ctx context.Context, holder *order.Holder, handler *answer.Handler, witness daemon.Witness) {
	spec := witness.Spec()
	open, over := witness.Recovery()
	if !open || spec != nil && spec.Spec.Mode == v1alpha1.ModeObserve {
		holder.Pass()
		return
	}
	var ordering v1alpha1.StartupOrdering
	if spec != nil {
		ordering = spec.Spec.StartupOrdering
	}
	handler.EventWritten = holder.Event
	holder.Begin(ordering, witness.Expected(), witness.StagesOpened)
	go holder.Follow(ctx, handler)
	go func() {
		select {
		case <-over:
			holder.Pass()
		case <-ctx.Done():
			holder.Stop()
		}
	}()
}
