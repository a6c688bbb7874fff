package daemon

import (
	"context"
	"fmt"

	"rekindle.edge/agent/report"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/agent/timeline"
	"rekindle.edge/api/v1alpha1"
)

// adoptSpec takes a spec over and returns when it is stored.
func (l *loop) adoptSpec(ctx context.Context, spec *snapshot.Spec) error {
	return l.order(ctx, func() error { return l.takeSpec(spec) })
}

// adoptReported takes lost records from those that were reported, and returns when they are
// stored.
func (l *loop) adoptReported(ctx context.Context, reported []v1alpha1.Recovery) error {
	return l.order(ctx, func() error { return l.takeReported(reported) })
}

// retain tells the store how many generations the policy wants.
func (l *loop) retain() {
	var generations int32
	if l.spec != nil {
		generations = l.spec.Spec.Snapshot.RetainGenerations
	}
	l.store.SetRetain(int(generations))
}

func (l *loop) takeSpec(spec *snapshot.Spec) error {
	if err := l.store.PutSpec(spec); err != nil {
		return fmt.Errorf("storing the spec: %w", err)
	}
	l.spec = spec
	l.adopted(spec)
	l.retain()
	if l.tracker != nil && l.tracker.Observe(timeline.TargetSet{Seconds: targetSeconds(spec)}) {
		l.unsaved = true
	}
	l.publish()
	return nil
}

func (l *loop) takeReported(reported []v1alpha1.Recovery) error {
	records, taken, err := l.store.AdoptReported(reported, l.bootID)
	if taken > 0 {
		l.log.Info("Store was new or an older one, taking records from the status", "records", taken)
		l.reset = true
	}
	if err != nil {
		return fmt.Errorf("storing the records that were reported: %w", err)
	}
	l.recoveries, l.lost = records, false
	l.publish()
	return nil
}

// publish lets the reporter see what is stored now.
func (l *loop) publish() {
	facts := report.Facts{Spec: l.spec, Recoveries: l.recoveries, RecordsLost: l.lost}
	if l.reset {
		facts.Findings = []v1alpha1.Finding{{
			Reason: v1alpha1.ReasonStoreReset, Severity: v1alpha1.SeveritySlows,
			Message: "The agent's store was found new, or replaced by an older one; earlier records were taken from this status. Look into the agent's log for what was wrong, and check the disk.",
		}}
	}
	l.reported.Store(&facts)
	l.signal()
}
