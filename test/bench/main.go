// Command bench measures how fast a real edge node is back after a power cut.
//
// Each case runs several times, the cases taking turns, always from the same saved
// disk: so all of them find the same pile of sandboxes that earlier boots left. Some
// cases boot no node: they measure the agent alone.
// One JSON line a run goes to the file OUT, progress to stderr, a table of medians
// and spread to stdout. The exit code is not zero when a run does not show what its
// case expects.
//
// boot_to_* counts from kernel start, the zero of the node's CLOCK_BOOTTIME.
// kubelet_to_* and last_serving_ms count from kubelet's first log line; in case
// floor, which has no kubelet, from the CRI call that found the runtime ready. A pod
// is ready when kubelet's own log says so, in floor when the outside probe gets its
// first 200; it serves, in every case, at that first 200. First is the pod whose name
// ends so, the youngest. A time that was not reached is null.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"rekindle.edge/test/edgenode"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// config is what the command line asks for.
type config struct {
	cases   []benchCase
	runs    int
	pods    int
	wans    []edgenode.WANMode
	kubelet edgenode.KubeletVersion
	out     string
	agent   string
	// cuts is how many power cuts a disk has been through before a run.
	cuts int
	// idle is how long case idle watches the agent.
	idle time.Duration
}

func parse(args []string) (config, error) {
	var c config
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	names := flags.String("cases", "native-online,native-offline,floor", "cases to run, by name")
	flags.IntVar(&c.runs, "runs", 5, "runs of each case")
	flags.IntVar(&c.pods, "pods", 10, "service pods on the node, 1 to 110")
	wan := flags.String("wan", string(edgenode.WANBlackhole), "how the WAN is cut, one or more: blackhole, refused, linkdown, noroute")
	kubelet := flags.String("kubelet", string(edgenode.KubeletNewest), "newest or oldest")
	flags.IntVar(&c.cuts, "cuts", 2, "power cuts that the node has been through before a run, at least 2")
	flags.DurationVar(&c.idle, "idle", 3*time.Minute, "how long case idle watches the agent")
	flags.StringVar(&c.agent, "agent", "bin/rekindle-agent", "the agent's program, for the cases with it")
	flags.StringVar(&c.out, "out", "bench.jsonl", "file for one JSON line a run")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	c.kubelet = edgenode.KubeletVersion(*kubelet)
	for mode := range strings.SplitSeq(*wan, ",") {
		c.wans = append(c.wans, edgenode.WANMode(mode))
		if !slices.Contains(edgenode.WANModes(), edgenode.WANMode(mode)) {
			return c, fmt.Errorf("-wan %q: want some of %q", mode, edgenode.WANModes())
		}
	}
	for name := range strings.SplitSeq(*names, ",") {
		bench, ok := caseNamed(name)
		if !ok {
			return c, fmt.Errorf("-cases: no case %q; there are %s", name, strings.Join(caseNames(), ", "))
		}
		c.cases = append(c.cases, bench)
	}
	switch {
	case c.runs < 1:
		return c, fmt.Errorf("-runs %d: want at least 1", c.runs)
	case c.pods < 1 || c.pods > 110:
		return c, fmt.Errorf("-pods %d: want 1 to 110", c.pods)
	case c.cuts < 2:
		return c, fmt.Errorf("-cuts %d: want at least 2: one that ends the first boot, one after the agent was installed", c.cuts)
	case c.kubelet != edgenode.KubeletNewest && c.kubelet != edgenode.KubeletOldest:
		return c, fmt.Errorf("-kubelet %q: want newest or oldest", c.kubelet)
	}
	return c, nil
}

func run(ctx context.Context, args []string) (err error) {
	c, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	out, err := os.Create(c.out)
	if err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	defer out.Close()
	start := time.Now()
	progress := func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%6.1fs  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}
	r, err := newRig(ctx, c, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	records, err := runAll(ctx, c, r, out, progress)
	fmt.Print(table(records))
	return err
}
