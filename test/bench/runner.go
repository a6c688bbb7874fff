package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// observePeriod is how often a run looks whether it is over; times come from the logs.
const observePeriod = 500 * time.Millisecond

// runAll runs the cases in turn and gives every record that was made. Its error
// joins what the runs did not show; a run that breaks for another reason ends it.
func runAll(ctx context.Context, c config, r *rig, out io.Writer, log func(string, ...any)) ([]record, error) {
	var records []record
	var unexpected []error
	for run := 1; run <= c.runs; run++ {
		for _, bench := range c.cases {
			result, err := runOnce(ctx, c, r, bench)
			if err != nil {
				return records, errors.Join(append(unexpected, fmt.Errorf("%s, run %d: %w", bench.name, run, err))...)
			}
			result.Run = run
			err = bench.check(result)
			result.OK = err == nil
			if err != nil {
				unexpected = append(unexpected, err)
			}
			records = append(records, result)
			if err := json.NewEncoder(out).Encode(result); err != nil {
				return records, err
			}
			log("run %d of %d, %s: %d/%d ready, last after %s", run, c.runs, bench.name, result.Ready, result.Pods, seconds(result.LastReady))
		}
	}
	return records, errors.Join(unexpected...)
}

// runOnce takes the power from the node, whatever it does, and measures one boot from the saved disk.
func runOnce(ctx context.Context, c config, r *rig, bench benchCase) (record, error) {
	result := record{Case: bench.name, Kubelet: string(c.kubelet), WAN: "up"}
	if bench.offline {
		result.WAN = string(c.wan)
	}
	result.setExtra(staleSandboxes, &r.stale)
	if err := r.reset(ctx, cmp.Or(bench.disk, savedDisk)); err != nil {
		return result, err
	}
	if err := bench.prepare(ctx, r); err != nil {
		return result, err
	}
	boot, err := r.node.Boot(ctx)
	if err != nil {
		return result, err
	}
	prober, err := r.node.Probe(ctx)
	if err != nil {
		return result, err
	}
	defer prober.Stop()
	var zero time.Time
	if bench.start != nil {
		if zero, err = bench.start(ctx, r); err != nil {
			return result, err
		}
	}
	names := r.podNames()
	for {
		o, err := bench.observe(boot, prober, zero)
		if err != nil {
			return result, err
		}
		if bench.done(names, o) || boot.Uptime() > bench.limit {
			result.fill(names, o)
			return result, nil
		}
		select {
		case <-ctx.Done():
			return result, ctx.Err()
		case <-time.After(observePeriod):
		}
	}
}

// reset leaves the node off, with the disk, its WAN up and its pods Ready
// in the eyes of the API server.
func (r *rig) reset(ctx context.Context, disk string) error {
	if err := r.node.RestoreWAN(ctx); err != nil {
		return err
	}
	if ready, err := r.apiReady(ctx); err != nil || ready < len(r.pods) {
		r.log("the API server has %d of %d pods Ready: waiting until all are", ready, len(r.pods))
		// Not with the disk of the case before: its kubelet may be disabled.
		if err := r.boot(ctx, savedDisk); err != nil {
			return err
		}
		if err := r.settle(ctx); err != nil {
			return err
		}
	}
	return r.powerOff(ctx, disk)
}

// boot boots the node from a saved disk.
func (r *rig) boot(ctx context.Context, disk string) error {
	if err := r.powerOff(ctx, disk); err != nil {
		return err
	}
	_, err := r.node.Boot(ctx)
	return err
}

// powerOff leaves the node off, with a saved disk.
func (r *rig) powerOff(ctx context.Context, disk string) error {
	if r.node.Current() != nil {
		if err := r.node.PowerCut(ctx); err != nil {
			return err
		}
	}
	return r.node.RestoreDisk(ctx, disk)
}
