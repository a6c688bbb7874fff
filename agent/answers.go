package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"

	"rekindle.edge/agent/daemon"
	"rekindle.edge/agent/localapi/access"
	"rekindle.edge/agent/localapi/answer"
	"rekindle.edge/agent/localapi/overlay"
	"rekindle.edge/agent/localapi/served"
	"rekindle.edge/agent/localapi/uplink"
	"rekindle.edge/agent/mirror"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/agent/wiring"
)

// defaultFreshnessWait applies while no policy says otherwise.
const defaultFreshnessWait = time.Second

// answers has the local API answer from the store, and what kubelet wrote handed over,
// until ctx ends.
func (n *installed) answers(ctx context.Context, store *snapshot.Store, m *mirror.Mirror, witness daemon.Witness) {
	log := logr.FromContextOrDiscard(ctx)
	server, holding, objects := n.server, n.holding, store.Objects()
	bootID, err := n.boot()
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
				Node: server.Node,
				Keys: func() (*jose.JSONWebKeySet, string) { return mirror.IssuerKeys(objects) },
				Runs: func(namespace, name string, uid types.UID) bool {
					pod, ok := objects.Get(snapshot.Pods, namespace, name)
					return ok && pod.UID == uid
				},
			},
		},
		Overlay: written,
		Missed:  n.missed.Add,
		Memory:  objects,
		Replay:  m.Replay,

		ReadUpstream: m.Seen,
		FreshnessWait: func() time.Duration {
			if wait := m.Offline().FreshnessWaitMilliseconds; wait != nil {
				return time.Duration(*wait) * time.Millisecond
			}
			return defaultFreshnessWait
		},
	}
	way := uplink.New(uplink.Route(server.Address), clock.RealClock{})
	handler.Uplink = way.Since
	pods, _ := objects.List(snapshot.Pods)
	registries := &served.Registries{Root: "/"}
	registries.Watch(ctx, served.PulledImages(pods))
	edits := &served.Edits{
		Policy: m.Offline, Boot: firstStart(log), Now: time.Now,
		CutOff: func() bool { return !linked() },
		Image:  (&served.Images{Runtime: n.runtime, Answers: registries.Answers}).Local,
		Pods:   func() []types.UID { return uids(objects) },
	}
	handler.Edit, handler.Listed = edits.For, witness.Listed
	handler.Written = m.Written
	handler.StatusWritten = func(info *request.RequestInfo, object []byte) {
		switch {
		case object == nil:
		case info.Resource == snapshot.Nodes.Resource:
			edits.NodeWritten(object)
		case info.Resource == snapshot.Pods.Resource:
			witness.PodWritten(object)
		}
	}
	holding.Begin(objects, m.Offline)
	handler.Held, handler.ListRefused = holding.Why, holding.ListRefused
	handler.Metrics, handler.Exposition, err = exposition(nodeCollector{trusted: objects.Trusted, linked: linked, last: witness.LastRecovery, verdict: witness.Verdict, forecast: witness.Forecast}, n.old.metrics()...)
	if err != nil {
		log.Error(err, "Nothing is counted, and /metrics is the API server's")
		handler.Metrics, handler.Exposition = nil, nil
	}
	stop := answer.New(handler, clock.RealClock{})
	beginOrder(ctx, n.starts, handler, witness)
	server.Answer(handler)
	go way.Run(ctx, func() {
		m.LinkUp()
		server.LinkUp(ctx)
	})
	go handler.Discover(ctx, server.Read)
	go func() {
		defer stop()
		written.Run(ctx, linked)
	}()
}

// inStepFile is there once the mirror was in step in this boot.
const inStepFile = "in-step"

// missedFile has what was asked for in vain in this boot.
const missedFile = "missed.json"

// startedFile is there once the agent has answered in this boot.
const startedFile = "answered"

// firstStart says whether the agent has not answered in this boot yet, so that kubelet
// starts after it.
func firstStart(log logr.Logger) bool {
	path := filepath.Join(wiring.RunDir, startedFile)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	err := os.MkdirAll(wiring.RunDir, 0o700)
	if err == nil {
		err = os.WriteFile(path, nil, 0o600)
	}
	if err != nil {
		// Better none than again and again.
		log.Error(err, "First start in this boot cannot be noted, kubelet gets node and pods as they are")
		return false
	}
	return true
}

func uids(objects *snapshot.Objects) []types.UID {
	pods, _ := objects.List(snapshot.Pods)
	all := make([]types.UID, len(pods))
	for i := range pods {
		all[i] = pods[i].UID
	}
	return all
}
