package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"k8s.io/client-go/rest"
)

const (
	addedP50  = "added_ms_p50"
	directP50 = "direct_ms_p50"
	// passRequests are made on each way, after warmUp others.
	passRequests, warmUp = 600, 20
	// passEvery keeps well below the 50 requests a second that the agent lets through. Each
	// request has a turn of its own: the second of a pair would find all awake.
	passEvery = 25 * time.Millisecond
)

// passThrough is a request that only the API server can answer, by way of the local API and
// straight, in turn.
var passThrough = benchCase{
	name:    "passthrough",
	measure: measurePassThrough,
	figures: []string{addedP50, directP50},
}

func measurePassThrough(ctx context.Context, s *solo, result *record) error {
	s.kill()
	if err := s.mirrorAll(ctx); err != nil {
		return err
	}
	defer s.kill()
	var took [2][]time.Duration
	var clients [2]*http.Client
	var urls [2]string
	for way, local := range []bool{false, true} {
		config, err := s.kubelet(local)
		if err != nil {
			return err
		}
		if clients[way], err = rest.HTTPClientFor(config); err != nil {
			return err
		}
		defer clients[way].CloseIdleConnections()
		// Without a version kubelet means what the API server has now.
		urls[way] = config.Host + "/api/v1/namespaces/default/pods/" + soloName(0)
	}
	pace := time.NewTicker(passEvery)
	defer pace.Stop()
	for i := range passRequests + warmUp {
		for way, client := range clients {
			<-pace.C
			began := time.Now()
			body, status, err := get(ctx, client, urls[way])
			if err != nil || status != http.StatusOK {
				return fmt.Errorf("GET %s: status %d: %w: %s", urls[way], status, err, body)
			}
			if i >= warmUp {
				took[way] = append(took[way], time.Since(began))
			}
		}
	}
	direct, passed := medianOf(took[0]), medianOf(took[1])
	pods, _, err := listed(ctx, clients[1], "https://"+localAddress)
	result.Pods, result.Ready = soloPods, pods
	result.setExtra(directP50, milliseconds(direct))
	result.setExtra(addedP50, milliseconds(passed-direct))
	return err
}

func medianOf(times []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[(len(sorted)-1)/2]
}
