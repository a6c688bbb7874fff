package main

import (
	"context"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"rekindle.edge/agent/config"
	"rekindle.edge/agent/localapi"
	"rekindle.edge/agent/localapi/access"
	"rekindle.edge/agent/localapi/answer"
	"rekindle.edge/agent/localapi/overlay"
	"rekindle.edge/agent/mirror"
	"rekindle.edge/agent/snapshot"
)

// defaultFreshnessWait applies while no policy says otherwise.
const defaultFreshnessWait = time.Second

// answers has the local API answer from the store, and what kubelet wrote handed over,
// until ctx ends.
func answers(ctx context.Context, settings config.Config, server *localapi.Server, store *snapshot.Store, m *mirror.Mirror, boot func() (string, error)) {
	log := logr.FromContextOrDiscard(ctx)
	objects := store.Objects()
	bootID, err := boot()
	if err != nil {
		log.Error(err, "Boot id cannot be read, statuses from before a restart are not told from those after it")
	}
	linked := func() bool {
		reach, _ := server.Reach()
		return reach == answer.Linked
	}
	written := overlay.New(objects, server.Ask, log, bootID)
	overlay.Restart(written, objects)
	handler := &answer.Handler{
		Log: log, Node: server.Node, Objects: objects, Upstream: server,
		Access: &access.Checker{
			Ask: server.Post, Linked: linked, Clock: clock.RealClock{}, Memory: access.NewMemory(objects, clock.RealClock{}),
			Tokens: &access.Tokens{
				Keys: func() (*jose.JSONWebKeySet, string) { return mirror.IssuerKeys(objects) },
				Runs: func(namespace, name string, uid types.UID) bool {
					pod, ok := objects.Get(snapshot.Pods, namespace, name)
					return ok && pod.UID == uid
				},
			},
		},
		Overlay: written,
		Replay:  m.Replay,
		FreshnessWait: func() time.Duration {
			if wait := m.Offline().FreshnessWaitMilliseconds; wait != nil {
				return time.Duration(*wait) * time.Millisecond
			}
			return defaultFreshnessWait
		},
	}
	stop := answer.New(handler, clock.RealClock{})
	server.Answer(handler)
	go func() {
		defer stop()
		written.Run(ctx, linked)
	}()
}
