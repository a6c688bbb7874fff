package main

import (
	"context"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/edgenode"
	"rekindle.edge/test/scenario"
)

// agent is the agent's program on the node.
const agent = "/usr/local/bin/rekindle-agent"

// measure cuts the link and the power of a node that follows a policy, and prints what its
// agent has foreseen and measured.
func measure(ctx context.Context, product *scenario.Product, say func(string, ...any)) error {
	edge, err := product.EdgeNode(ctx, node, pool)
	if err != nil {
		return err
	}
	if err := product.Apply(ctx, sample); err != nil {
		return err
	}
	if err := product.CreatePods(ctx, node, pods); err != nil {
		return err
	}
	say("rekindle-agent install, on %s", node)
	if output, err := edge.Exec(ctx, agent, "install"); err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	if err := product.WaitObserved(ctx, node); err != nil {
		return err
	}
	verdict, err := product.WaitRestartReady(ctx, node)
	if err != nil {
		return err
	}
	say("the verdict of %s: %s", node, verdict)
	// The agent batches what it sees of pods for a second: pods that turned Ready within
	// the last second before a cut count as not Ready before.
	time.Sleep(3 * time.Second)
	say("cutting the link of %s, and its power", node)
	if err := edge.CutWAN(ctx, edgenode.WANBlackhole); err != nil {
		return err
	}
	if err := edge.PowerCut(ctx); err != nil {
		return err
	}
	boot, err := edge.Boot(ctx)
	if err != nil {
		return err
	}
	if err := scenario.WaitReadyHere(ctx, boot, pods); err != nil {
		return err
	}
	say("%d pods are ready again, cut off; giving the link back", pods)
	if err := edge.RestoreWAN(ctx); err != nil {
		return err
	}
	record, err := product.WaitRecovery(ctx, node, boot.ID, 3*time.Minute)
	if err != nil {
		return err
	}
	if _, err := product.WaitRestartReady(ctx, node); err != nil {
		return err
	}
	if err := product.WaitPolicyMeasured(ctx, policy); err != nil {
		return err
	}
	if err := printRecord(record); err != nil {
		return err
	}
	if record.Result != v1alpha1.RecoveryComplete {
		return fmt.Errorf("the recovery is %s (%s): %d of %d pods are Ready",
			record.Result, record.IncompleteReason, record.ReadyPods, record.ExpectedPods)
	}
	return nil
}

// printRecord prints a recovery phase by phase.
func printRecord(r *v1alpha1.Recovery) error {
	fmt.Printf("\nRecovery of %s after %s, %s: %d of %d pods Ready, %s\n\n", node, r.PreviousEnd, r.ConnectivityAtStart, r.ReadyPods, r.ExpectedPods, r.Result)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	rows := "phase\tms\tsince kernel start\t\n"
	since := int64(0)
	for _, phase := range []struct {
		name string
		ms   *int64
	}{
		{"kernel", r.Phases.Kernel}, {"userspace", r.Phases.Userspace}, {"kubeletStart", r.Phases.KubeletStart},
		{"nodeList", r.Phases.NodeList}, {"podList", r.Phases.PodList}, {"firstSandbox", r.Phases.FirstSandbox},
		{"firstReady", r.Phases.FirstReady}, {"lastReady", r.Phases.LastReady},
	} {
		if phase.ms == nil {
			continue // nobody observed it; its time is part of the next phase
		}
		since += *phase.ms
		rows += fmt.Sprintf("%s\t%d\t%d\t\n", phase.name, *phase.ms, since)
	}
	if _, err := w.Write([]byte(rows)); err != nil {
		return err
	}
	return w.Flush()
}

func printUsage(product *scenario.Product) {
	fmt.Printf(`The cluster is still running. Use it with

    export KUBECONFIG=%s
    alias kubectl=%s
    kubectl get erp,nrec
    kubectl describe nrec %s

and remove it with

    make demo-clean
`, product.Cluster.AdminKubeconfig(), product.KubectlPath(), node)
}
