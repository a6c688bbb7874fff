package daemon

import (
	"context"
	"time"

	"rekindle.edge/agent/readiness"
	"rekindle.edge/agent/readiness/gather"
	"rekindle.edge/agent/report"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

const (
	// dryRunAfter is the longest that the first dry run waits for the recovery to be over: the
	// pods need the processors more.
	dryRunAfter = time.Minute
	// dryRunPause is before it otherwise: kubelet's first lists need them more.
	dryRunPause = time.Second
)

// runDryRun makes dry runs until ctx ends; recovering says that a recovery is measured.
func (d Daemon) runDryRun(ctx context.Context, l *loop, objects *snapshot.Objects, recovering bool) {
	over, limit := l.closed, dryRunAfter
	if !recovering {
		over, limit = nil, dryRunPause
	}
	select {
	case <-ctx.Done():
		return
	case <-over:
	case <-time.After(limit):
	}
	d.DryRun.Run(ctx, objects, func() *snapshot.Spec { return l.reported.Load().Spec }, l.signal)
}

// judge adds the dry run's findings to the others, and makes the verdict over all of them.
func (d Daemon) judge(facts *report.Facts) {
	if d.DryRun == nil {
		return
	}
	result := d.DryRun.Latest()
	if result == nil {
		return
	}
	facts.Findings = readiness.Sort(append(facts.Findings[:len(facts.Findings):len(facts.Findings)], result.Findings...))
	facts.Ready = readiness.Conclude(facts.Findings, result.Invisible)
	facts.SurvivesUntil = result.SurvivesUntil
	facts.Forecast = readiness.Forecast(facts.Recoveries, result.Plan, targetSeconds(facts.Spec))
}

// notePlan writes down in a record what there was to start.
func (l *loop) notePlan(record *v1alpha1.Recovery) {
	var policy *v1alpha1.NodeRecoverySpec
	if l.spec != nil {
		policy = &l.spec.Spec
	}
	readiness.NotePlan(record, gather.Plan(l.store.Objects(), policy))
}
