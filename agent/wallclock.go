package main

import (
	"bytes"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rekindle.edge/agent/boot"
	"rekindle.edge/agent/host"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/agent/wiring"
)

// clockFile says in this boot to what the clock was set.
const clockFile = "clock.json"

// settable is the machine's clock.
type settable interface {
	host.Clock
	SetWall(time.Time) error
	Synchronised() bool
}

// wallClock sets a clock that begins in the past forward, and knows whether somebody has set
// it right since.
type wallClock struct {
	settable
	file string

	mu   sync.Mutex
	step *clockStep
}

// clockStep is what is remembered of a step: kernel start by the clock that was set.
type clockStep struct {
	BootID      string    `json:"bootID"`
	KernelStart time.Time `json:"kernelStart"`
}

func newWallClock() *wallClock {
	return &wallClock{settable: host.SystemClock{}, file: filepath.Join(wiring.RunDir, clockFile)}
}

// catchUp sets the clock forward if it lies before what was stamped in the boot before. It is
// called before the runtime and kubelet may start.
func (c *wallClock) catchUp(log logr.Logger, stateDir, bootID string, objects stamped) {
	if c.load(log, bootID) {
		return
	}
	last, err := snapshot.LastAlive(stateDir)
	if err != nil {
		log.Error(err, "Clock is left as it is")
		return
	}
	now := c.Wall()
	target := boot.CatchUp(now, bootID, last, newest(objects), c.Synchronised())
	if target.IsZero() {
		return
	}
	log.Info("Clock lies before the last sign of life of this node, setting it forward", "clock", now, "to", target)
	if err := c.SetWall(target); err != nil {
		log.Error(err, "Clock stays in the past: containers may not be told from those of before the restart")
		return
	}
	step := clockStep{BootID: bootID, KernelStart: c.kernelStart()}
	c.mu.Lock()
	c.step = &step
	c.mu.Unlock()
	if err := host.SaveJSON(c.file, step); err != nil {
		log.Error(err, "An agent that is restarted in this boot will take the clock for true")
	}
}

// load takes up a step that was made before in this boot.
func (c *wallClock) load(log logr.Logger, bootID string) bool {
	var step clockStep
	found, err := host.LoadJSON(c.file, &step)
	if err != nil {
		log.Error(err, "It is not known whether the clock was set in this boot")
	}
	if !found || err != nil || step.BootID != bootID {
		return false
	}
	c.mu.Lock()
	c.step = &step
	c.mu.Unlock()
	return true
}

func (c *wallClock) kernelStart() time.Time { return c.Wall().Add(-c.Boot()) }

// drift is more than a clock that nobody sets goes wrong by while it matters.
const drift = time.Second

// madeUp says whether the clock still counts from where it was set to.
func (c *wallClock) madeUp() bool {
	c.mu.Lock()
	step := c.step
	c.mu.Unlock()
	return step != nil && c.kernelStart().Sub(step.KernelStart).Abs() < drift
}

// stamped is what kubelet last wrote.
type stamped interface {
	List(schema.GroupVersionResource) ([]snapshot.Object, uint64)
	Overlays() map[snapshot.OverlayKey][]byte
}

// stamps begin the times of containers in a status.
var stamps = [][]byte{[]byte(`"startedAt":"`), []byte(`"finishedAt":"`)}

// newest is the latest time of a container in the statuses of the node's pods. They are only
// looked through: the start of the node waits for it.
func newest(objects stamped) time.Time {
	var latest time.Time
	look := func(raw []byte) {
		for _, stamp := range stamps {
			for rest := raw; ; {
				i := bytes.Index(rest, stamp)
				if i < 0 {
					break
				}
				rest = rest[i+len(stamp):]
				text := rest[:max(0, bytes.IndexByte(rest, '"'))]
				if at, err := time.Parse(time.RFC3339, string(text)); err == nil && at.After(latest) {
					latest = at
				}
			}
		}
	}
	pods, _ := objects.List(snapshot.Pods)
	for _, pod := range pods {
		look(pod.Raw)
	}
	for key, raw := range objects.Overlays() {
		if key.Resource == snapshot.Pods {
			look(raw)
		}
	}
	return latest
}
