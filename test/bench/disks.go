package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rekindle.edge/api/v1alpha1"
)

const (
	agentInNode = "/usr/local/bin/rekindle-agent"
	// firstDisk is the disk of the first boot, which all others are made from.
	firstDisk = "first"
	// savedDisk is the disk of a plain node, installedDisk that of one with the agent.
	savedDisk, installedDisk = "prepared", "installed"
	// mirrorTime is more than the agent takes to have everything on the disk.
	mirrorTime = 8 * time.Second
)

// makeDisks makes the disks of all cases of the node, which is off and has the disk of its
// first boot. All have been through as many power cuts, so that they hold as many sandboxes
// of earlier boots.
func (s *site) makeDisks(ctx context.Context, c config) error {
	// Further cuts come while nothing is installed anywhere.
	for cut := 2; cut < c.cuts; cut++ {
		if _, err := s.node.Boot(ctx); err != nil {
			return err
		}
		if err := errors.Join(s.settleBoot(ctx), s.cutPower(ctx)); err != nil {
			return err
		}
	}
	if err := s.node.SaveDisk(ctx, firstDisk); err != nil {
		return err
	}
	var made []string
	for _, bench := range c.cases {
		if bench.measure != nil || bench.load().node != s.workload.node || slices.Contains(made, bench.disk()) {
			continue
		}
		made = append(made, bench.disk())
		if err := s.makeDisk(ctx, bench); err != nil {
			return fmt.Errorf("disk %s: %w", bench.disk(), err)
		}
	}
	return nil
}

// makeDisk saves the disk of a node that lost its power after it served.
func (s *site) makeDisk(ctx context.Context, bench benchCase) error {
	s.log("%s: making disk %s", s.workload.node, bench.disk())
	if err := s.node.RestoreDisk(ctx, firstDisk); err != nil {
		return err
	}
	if err := s.setPolicy(ctx, bench.spec); err != nil {
		return err
	}
	if _, err := s.node.Boot(ctx); err != nil {
		return err
	}
	if err := s.node.WaitReady(ctx); err != nil {
		return err
	}
	if err := errors.Join(s.settleBoot(ctx), s.settle(ctx)); err != nil {
		return err
	}
	if bench.agent {
		if err := s.install(ctx, bench.spec); err != nil {
			return err
		}
	}
	stale, err := s.countSandboxes(ctx)
	if err != nil {
		return err
	}
	s.stale[bench.disk()] = stale
	if err := s.cutPower(ctx); err != nil {
		return err
	}
	return s.node.SaveDisk(ctx, bench.disk())
}

// install installs the agent and returns when everything that a restart needs is on the disk.
func (s *site) install(ctx context.Context, spec *v1alpha1.NodeRecoverySpec) error {
	if output, err := s.node.Exec(ctx, agentInNode, "install"); err != nil {
		return fmt.Errorf("install: %w: %s", err, output)
	}
	if s.workload.proxy {
		if err := s.proxyThroughLocalAPI(ctx); err != nil {
			return err
		}
	}
	if err := s.settle(ctx); err != nil {
		return err
	}
	if spec != nil {
		if err := s.waitAdopted(ctx); err != nil {
			return err
		}
	}
	time.Sleep(mirrorTime)
	return nil
}

// setPolicy gives the node the object that the manager would make of a policy that matches
// it, or takes it away.
func (s *site) setPolicy(ctx context.Context, spec *v1alpha1.NodeRecoverySpec) error {
	if !s.product {
		return nil
	}
	recovery := &v1alpha1.NodeRecovery{ObjectMeta: metav1.ObjectMeta{Name: s.workload.node}}
	if spec == nil {
		return client.IgnoreNotFound(s.objects.Delete(ctx, recovery))
	}
	want := *spec
	want.PolicyName, want.PolicyGeneration = "bench", 1
	err := s.objects.Get(ctx, client.ObjectKeyFromObject(recovery), recovery)
	recovery.Spec = want
	if apierrors.IsNotFound(err) {
		return s.objects.Create(ctx, recovery)
	}
	return errors.Join(err, s.objects.Update(ctx, recovery))
}

// waitAdopted waits until the agent says that it has taken over the spec.
func (s *site) waitAdopted(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for {
		var recovery v1alpha1.NodeRecovery
		err := s.objects.Get(ctx, client.ObjectKey{Name: s.workload.node}, &recovery)
		if err == nil && recovery.Status.ObservedGeneration == recovery.Generation {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the agent of %s has observed generation %d of %d of its NodeRecovery: %w",
				s.workload.node, recovery.Status.ObservedGeneration, recovery.Generation, errors.Join(err, ctx.Err()))
		case <-time.After(settlePoll):
		}
	}
}
