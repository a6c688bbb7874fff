package main

import (
	"context"
	"time"

	"k8s.io/client-go/rest"
)

const (
	startToPodList = "start_to_podlist_ms"
	// startCPU is the processor time that the agent took until then, its children's apart: a
	// machine that has other things to do changes the one and not the other.
	startCPU = "start_cpu_ms"
	// refusedBefore counts answers that were not the list; kubelet would have backed off.
	refusedBefore = "refused_before"
	// startLimit bounds one start.
	startLimit = 15 * time.Second
	// carrierTime is more than the kernel takes to tell that a link is up, or down.
	carrierTime = 1500 * time.Millisecond
)

// agentStart is the agent of a full node that starts cut off: from the start of its process
// until kubelet's list of pods is answered. The sockets are there before, as systemd's are.
var agentStart = benchCase{
	name:    "start",
	offline: true,
	measure: measureStart,
	figures: []string{startToPodList, startCPU, refusedBefore},
}

func measureStart(ctx context.Context, s *solo, result *record) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	s.kill()
	if err := s.setWAN(ctx, result.WAN); err != nil {
		return err
	}
	// A link that comes up meanwhile would be another case.
	time.Sleep(carrierTime)
	config, err := s.kubelet(true)
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	began, err := s.start()
	if err != nil {
		return err
	}
	pods, refused, err := listed(ctx, client, config.Host)
	took := time.Since(began)
	if err != nil {
		return err
	}
	used, err := readUsage(s.process.PID())
	if err != nil {
		return err
	}
	result.Pods, result.Ready = soloPods, pods
	result.setExtra(startCPU, milliseconds(used.cpu))
	result.setExtra(startToPodList, milliseconds(took))
	result.setExtra(refusedBefore, float64(refused))
	s.kill()
	return s.setWAN(context.WithoutCancel(ctx), wanUp)
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
