// The demo: a cluster, an edge node, a power cut, and the recovery that Rekindle measured.
// Run it by `make demo`; KEEP=1 leaves everything running.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"rekindle.edge/test/cluster"
	"rekindle.edge/test/scenario"
)

const (
	node   = "edge-1"
	pool   = "stores"
	policy = "edge-pools"
	sample = "edge-pools.yaml"
	pods   = 10
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) == 2 && os.Args[1] == "clean" {
		exit(cluster.RemoveKept(ctx))
	}
	exit(run(ctx, os.Getenv("KEEP") == "1"))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(ctx context.Context, keep bool) (err error) {
	if os.Getuid() != 0 {
		return errors.New("needs root, for the namespaces and mounts of the nodes; run `sudo make demo`")
	}
	begin := time.Now()
	say := func(format string, args ...any) {
		fmt.Printf("%6.1f s  %s\n", time.Since(begin).Seconds(), fmt.Sprintf(format, args...))
	}
	say("starting the control plane")
	c, err := cluster.Start(ctx, cluster.Options{Nodes: true, Log: say})
	if err != nil {
		return err
	}
	defer func() {
		if keep && err == nil {
			err = c.Keep()
			return
		}
		say("cleaning up")
		err = errors.Join(err, c.Stop())
	}()

	product, err := scenario.Install(ctx, c, say)
	if err != nil {
		return err
	}
	if err := measure(ctx, product, say); err != nil {
		return err
	}
	out, err := product.Kubectl(ctx, "get", "erp,nrec")
	if err != nil {
		return err
	}
	fmt.Printf("\n$ kubectl get erp,nrec\n%s\n", out)
	if keep {
		printUsage(product)
	}
	return nil
}
