package daemon

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/agent/mirror"
	"rekindle.edge/agent/report"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

// facts gives the reporter what the store and the mirror say, without asking the loop.
func (d Daemon) facts(l *loop, m *mirror.Mirror) func() report.Facts {
	return func() report.Facts {
		facts := *l.reported.Load()
		facts.AgentVersion = d.Version
		if d.Serving != nil {
			facts.Serving = d.Serving()
		}
		if d.Missed != nil {
			facts.Missed = d.Missed()
		}
		if d.Holding != nil {
			facts.Findings = append(facts.Findings[:len(facts.Findings):len(facts.Findings)], d.Holding.Findings()...)
		}
		r := m.Report()
		facts.Fresh, facts.Findings = r.Fresh, slices.Concat(storeFindings(l.store), facts.Findings, r.Findings)
		if d.Warm != nil {
			facts.Findings = append(facts.Findings, d.Warm.Findings()...)
			warm := d.Warm.Images()
			facts.Images, facts.Warm = warm.Status, warm.Warm
		}
		facts.Snapshot = &v1alpha1.SnapshotStatus{Objects: r.Objects}
		facts.Snapshot.Generation, facts.Snapshot.Bytes = snapshot.OnDisk(d.Config.StateDir)
		if !r.InStep.IsZero() {
			facts.Snapshot.InStepTime = &metav1.Time{Time: r.InStep}
		}
		d.judge(&facts)
		return facts
	}
}

func storeFindings(store *snapshot.Store) []v1alpha1.Finding {
	problem := store.Problem()
	if problem == nil {
		return nil
	}
	return []v1alpha1.Finding{{
		Reason: v1alpha1.ReasonStoreNotWritten, Severity: v1alpha1.SeverityBlocksNode,
		Message: "The agent's store takes no changes, make room or repair the disk: " + problem.Error(),
	}}
}

// watchStore wakes the reporter when the store begins or ceases to take changes.
func (l *loop) watchStore() {
	if problem := l.store.Problem() != nil; problem != l.storeProblem {
		l.storeProblem = problem
		l.signal()
	}
}
