package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"rekindle.edge/test/edgenode"
)

// observePeriod is how often a run looks whether it is over; times come from the logs.
const observePeriod = 500 * time.Millisecond

// wanUp is a link that is not cut, as records name it.
const wanUp = "up"

// runAll runs the cases in turn, each that is cut off in all ways asked for, and gives every
// record that was made. Its error joins what the runs did not show; a run that breaks for
// another reason ends it.
func runAll(ctx context.Context, c config, r *rig, out io.Writer, log func(string, ...any)) ([]record, error) {
	var records []record
	var unexpected []error
	for run := 1; run <= c.runs; run++ {
		for _, bench := range c.cases {
			for _, wan := range c.waysOf(bench) {
				result, err := r.runOnce(ctx, c, bench, wan)
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
				log("run %d of %d, %s", run, c.runs, progressOf(bench, result))
			}
		}
	}
	return records, errors.Join(unexpected...)
}

// waysOf are the states of the WAN that a case runs in, as records name them.
func (c config) waysOf(bench benchCase) []string {
	if !bench.offline {
		return []string{wanUp}
	}
	var ways []string
	for _, wan := range c.wans {
		ways = append(ways, string(wan))
	}
	if bench.oneWay {
		return ways[:1]
	}
	return ways
}

func progressOf(bench benchCase, r record) string {
	text := fmt.Sprintf("%s, WAN %s: %d/%d ready", bench.name, r.WAN, r.Ready, r.Pods)
	if bench.measure == nil {
		text += ", last after " + seconds(number(r.LastReady))
	}
	for _, figure := range bench.figures {
		text += fmt.Sprintf(", %s %s", figure, plain(r.Extra[figure]))
	}
	return text
}

func (r *rig) runOnce(ctx context.Context, c config, bench benchCase, wan string) (record, error) {
	result := record{Case: bench.name, Kubelet: string(c.kubelet), WAN: wan}
	if bench.measure != nil {
		return result, bench.measure(ctx, r.solo, &result)
	}
	return result, r.sites[bench.load().node].boots(ctx, bench, &result)
}

// boots takes the power from the node, whatever it does, and measures one boot from the
// case's disk.
func (s *site) boots(ctx context.Context, bench benchCase, result *record) error {
	result.setExtra(staleSandboxes, s.stale[bench.disk()])
	if err := s.reset(ctx, bench); err != nil {
		return err
	}
	if bench.offline {
		if err := s.node.CutWAN(ctx, edgenode.WANMode(result.WAN)); err != nil {
			return err
		}
	}
	if bench.prepare != nil {
		if err := bench.prepare(ctx, s); err != nil {
			return err
		}
	}
	boot, err := s.node.Boot(ctx)
	if err != nil {
		return err
	}
	prober, err := s.node.Probe(ctx)
	if err != nil {
		return err
	}
	defer prober.Stop()
	var zero time.Time
	if bench.start != nil {
		if zero, err = bench.start(ctx, s); err != nil {
			return err
		}
	}
	names := s.podNames()
	for {
		o, err := bench.observe(boot, prober, zero)
		if err != nil {
			return err
		}
		if bench.done(names, o) || boot.Uptime() > bench.limit {
			result.fill(names, s.workload.critical, o)
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(observePeriod):
		}
	}
	if bench.after != nil {
		return bench.after(ctx, s, result)
	}
	return nil
}

// reset leaves the node off, with the case's disk and policy, its WAN up and, for a case
// that is not cut off, its pods Ready in the eyes of the API server.
func (s *site) reset(ctx context.Context, bench benchCase) error {
	if err := s.node.RestoreWAN(ctx); err != nil {
		return err
	}
	if ready, err := s.apiReady(ctx); !bench.offline && (err != nil || ready < len(s.pods)) {
		s.log("%s: the API server has %d of %d pods Ready: waiting until all are", s.workload.node, ready, len(s.pods))
		// Not with the disk of the case before: its kubelet may be disabled.
		if err := s.powerOff(ctx, firstDisk); err != nil {
			return err
		}
		if _, err := s.node.Boot(ctx); err != nil {
			return err
		}
		if err := s.settle(ctx); err != nil {
			return err
		}
	}
	if err := s.powerOff(ctx, bench.disk()); err != nil {
		return err
	}
	return s.setPolicy(ctx, bench.spec)
}

// powerOff leaves the node off, with a saved disk.
func (s *site) powerOff(ctx context.Context, disk string) error {
	if s.node.Current() != nil {
		if err := s.node.PowerCut(ctx); err != nil {
			return err
		}
	}
	return s.node.RestoreDisk(ctx, disk)
}
