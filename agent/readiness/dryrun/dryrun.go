// Package dryrun makes the dry run of the next boot again and again while the agent runs.
package dryrun

import (
	"cmp"
	"context"
	"reflect"
	"sync/atomic"
	"time"

	"rekindle.edge/agent/readiness"
	"rekindle.edge/agent/readiness/gather"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

const (
	// every is the pace: what is not told, such as an image that is removed, is found so.
	every = 3 * time.Second
	// gather changes of the snapshot for this long, and no two runs are closer than least.
	settle, least = 300 * time.Millisecond, time.Second
)

// Result is what the last dry run has found.
type Result struct {
	Findings []v1alpha1.Finding
	// Invisible is what could not be looked at.
	Invisible []string
	// SurvivesUntil is the first expiry that would break a restart; zero: none is known.
	SurvivesUntil time.Time
	// Plan is the start that is to be expected.
	Plan []readiness.Stage
}

// DryRun keeps the last result.
type DryRun struct {
	Gatherer *gather.Gatherer
	// Every is the pace; 0: 3 s.
	Every time.Duration
	// Again asks for a run soon, of what the snapshot does not tell; nil: nobody does.
	Again  <-chan struct{}
	latest atomic.Pointer[Result]
}

// Latest is the last result; nil: there was no run yet.
func (d *DryRun) Latest() *Result { return d.latest.Load() }

// Once makes one dry run.
func (d *DryRun) Once(ctx context.Context) *Result {
	facts := d.Gatherer.Facts(ctx)
	return &Result{
		Findings: readiness.Check(facts), Invisible: facts.Invisible, SurvivesUntil: readiness.SurvivesUntil(facts),
		Plan: readiness.Plan(facts.Pods, facts.Policy),
	}
}

// Run makes dry runs until ctx ends, over objects and spec: soon after the snapshot has
// changed, and every few seconds. It calls changed when one finds something else.
func (d *DryRun) Run(ctx context.Context, objects *snapshot.Objects, spec func() *snapshot.Spec, changed func()) {
	d.Gatherer.Objects, d.Gatherer.Spec = objects, spec
	events := make(chan struct{}, 1)
	defer objects.Subscribe(func(snapshot.Event) {
		select {
		case events <- struct{}{}:
		default:
		}
	})()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var last time.Time
	soon := false
	hurry := func() {
		if !soon {
			soon = true
			timer.Reset(max(settle, least-time.Since(last)))
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-events:
			hurry()
			continue
		case <-d.Again:
			hurry()
			continue
		}
		result := d.Once(ctx)
		if ctx.Err() != nil {
			return // what was asked with an ended context was not answered
		}
		if before := d.latest.Swap(result); before == nil || !reflect.DeepEqual(*before, *result) {
			changed()
		}
		last, soon = time.Now(), false
		timer.Reset(cmp.Or(d.Every, every))
	}
}
