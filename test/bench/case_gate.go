package main

import (
	"context"
	"fmt"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	// gateSocket is where the agent takes CRI calls.
	gateSocket = "/run/rekindle/cri.sock"
	// gateRounds of the calls that kubelet makes most are measured, after warmUp others.
	gateRounds = 500
)

// gateCalls is a CRI call by way of the gate and straight, in turn, on a node that is back.
var gateCalls = benchCase{
	name:    "gate",
	agent:   true,
	limit:   2 * time.Minute,
	ready:   all,
	after:   measureGate,
	figures: []string{addedP50, directP50},
}

func measureGate(ctx context.Context, s *site, result *record) error {
	var clients [2]runtimeapi.RuntimeServiceClient
	for way, socket := range []string{"/run/containerd/containerd.sock", gateSocket} {
		conn, err := s.node.Dial(socket)
		if err != nil {
			return err
		}
		defer conn.Close()
		clients[way] = runtimeapi.NewRuntimeServiceClient(conn)
	}
	list, err := clients[0].ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil {
		return err
	}
	if len(list.GetContainers()) == 0 {
		return fmt.Errorf("node %s has no containers", s.workload.node)
	}
	id := list.GetContainers()[0].GetId()
	calls := []func(runtimeapi.RuntimeServiceClient) error{
		func(c runtimeapi.RuntimeServiceClient) error {
			_, err := c.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
			return err
		},
		func(c runtimeapi.RuntimeServiceClient) error {
			_, err := c.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
			return err
		},
		func(c runtimeapi.RuntimeServiceClient) error {
			_, err := c.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
			return err
		},
	}
	var took [2][]time.Duration
	for round := range gateRounds + warmUp {
		for turn, call := range calls {
			// Whoever comes second finds all awake: they change places.
			for place := range clients {
				way := (place + round + turn) % len(clients)
				began := time.Now()
				if err := call(clients[way]); err != nil {
					return err
				}
				if round >= warmUp {
					took[way] = append(took[way], time.Since(began))
				}
			}
		}
	}
	direct, passed := medianOf(took[0]), medianOf(took[1])
	result.setExtra(directP50, milliseconds(direct))
	result.setExtra(addedP50, milliseconds(passed-direct))
	return nil
}
