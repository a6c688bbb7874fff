package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/kubernetes"
)

const (
	rssBytes     = "rss_bytes"
	cpuFraction  = "cpu_fraction"
	diskPerHour  = "disk_bytes_per_hour"
	watchSeconds = "watched_seconds"
	// quietTime is more than the agent takes to seal what it has mirrored.
	quietTime = 30 * time.Second
)

// agentIdle is the agent of a full node on which nothing happens, connected, with kubelet's
// watches open and its lease renewed.
var agentIdle = benchCase{
	name:    "idle",
	measure: measureIdle,
	figures: []string{rssBytes, cpuFraction, diskPerHour, watchSeconds},
}

func measureIdle(ctx context.Context, s *solo, result *record) error {
	s.kill()
	// A new store: no boot is being measured.
	if err := os.RemoveAll(s.file("state")); err != nil {
		return err
	}
	if err := errors.Join(s.startRuntime(), s.mirrorAll(ctx)); err != nil {
		return err
	}
	defer s.kill()
	config, err := s.kubelet(true)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	kubelet, stop := context.WithCancel(ctx)
	defer stop()
	failed := beKubelet(kubelet, client)
	wait := func(d time.Duration) error {
		select {
		case err := <-failed:
			return fmt.Errorf("as kubelet: %w", err)
		case <-s.process.Done():
			return s.process.Err()
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(d):
			return nil
		}
	}
	if err := wait(quietTime); err != nil {
		return err
	}
	before, err := readUsage(s.process.PID())
	if err != nil {
		return err
	}
	began := time.Now()
	if err := wait(s.idle); err != nil {
		return err
	}
	after, err := readUsage(s.process.PID())
	if err != nil {
		return err
	}
	watched := time.Since(began)
	pods, err := client.CoreV1().Pods("").List(ctx, soloPodOptions())
	if err != nil {
		return err
	}
	result.Pods, result.Ready = soloPods, len(pods.Items)
	result.setExtra(rssBytes, float64(after.rss))
	result.setExtra(cpuFraction, (after.cpu-before.cpu).Seconds()/watched.Seconds())
	result.setExtra(diskPerHour, float64(after.written-before.written)/watched.Hours())
	result.setExtra(watchSeconds, watched.Round(time.Second).Seconds())
	return nil
}
