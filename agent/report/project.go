// Package report writes the status of the node's NodeRecovery: a projection of the store,
// brought about again whenever what the API server has differs.
package report

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

// Bounds of the CRD.
const (
	maxRecoveries = 5
	maxFindings   = 10
	maxMessage    = 256
	maxReason     = 64
	maxVersion    = 64
	maxPod        = 317
	maxBootID     = 36
)

// snapshotEvery is how often the snapshot's numbers are worth a write.
const snapshotEvery = time.Hour

// Facts are what the store says, and who says it.
type Facts struct {
	AgentVersion string
	// Spec that was taken over. Nil: built-in defaults apply.
	Spec *snapshot.Spec
	// Recoveries are closed records, newest first.
	Recoveries []v1alpha1.Recovery
	// RecordsLost says that some may be missing that were reported before.
	RecordsLost bool
	// Fresh is the condition SnapshotFresh.
	Fresh metav1.Condition
	// Serving is the condition LocalAPIServing. Unset: the agent is not installed.
	Serving metav1.Condition
	// Ready is the condition RestartReady. Unset: there was no dry run since the agent
	// began, and the status keeps what it says.
	Ready metav1.Condition
	// SurvivesUntil is the first expiry that would break a restart; zero: none is known.
	SurvivesUntil time.Time
	// Forecast of the next recovery; nil: there was no dry run.
	Forecast *v1alpha1.Forecast
	// Warm is the condition ImagesWarm. Unset: the agent is not installed.
	Warm metav1.Condition
	// Images is unset until they were looked at.
	Images *v1alpha1.ImagesStatus
	// Snapshot is unset until there is one.
	Snapshot *v1alpha1.SnapshotStatus
	// Findings in any order and number.
	Findings []v1alpha1.Finding
	// Missed is what was asked for in vain while cut off, most often asked first, as many
	// as the status has room for.
	Missed []v1alpha1.MissedResource
}

// Project makes the status. Conditions that did not change keep the transition time that
// they have in the present status; others get the time now.
func Project(facts Facts, present v1alpha1.NodeRecoveryStatus, now metav1.Time) v1alpha1.NodeRecoveryStatus {
	status := v1alpha1.NodeRecoveryStatus{AgentVersion: cut(facts.AgentVersion, maxVersion)}
	if facts.Spec != nil {
		status.ObservedGeneration = facts.Spec.Generation
	}
	total := int32(len(facts.Findings))
	if kept := meta.FindStatusCondition(present.Conditions, v1alpha1.ConditionRestartReady); facts.Ready.Type == "" && kept != nil && kept.Reason != v1alpha1.ReasonNotEvaluated {
		facts.Ready = *kept
		facts.keep(present)
		total = max(int32(len(facts.Findings)), present.FindingsTotal)
	}
	if kept := meta.FindStatusCondition(present.Conditions, v1alpha1.ConditionImagesWarm); facts.Warm.Reason == v1alpha1.ReasonNotEvaluated && kept != nil && present.Images != nil {
		// An agent that has just begun must not write twice to say the same again.
		facts.Warm, facts.Images = *kept, present.Images
	}
	for _, condition := range conditions(facts) {
		if old := meta.FindStatusCondition(present.Conditions, condition.Type); old != nil && old.Status == condition.Status {
			condition.LastTransitionTime = old.LastTransitionTime
		} else {
			condition.LastTransitionTime = now.Rfc3339Copy()
		}
		condition.ObservedGeneration = status.ObservedGeneration
		status.Conditions = append(status.Conditions, condition)
	}
	for i, record := range facts.Recoveries[:min(maxRecoveries, len(facts.Recoveries))] {
		status.Recoveries = append(status.Recoveries, bounded(record, i == 0))
	}
	status.Findings = worst(facts.Findings)
	status.FindingsTotal = total
	status.MissedResources = facts.Missed
	status.Forecast = facts.Forecast
	if !facts.SurvivesUntil.IsZero() {
		status.SurvivesOfflineUntil = ptr.To(metav1.NewTime(facts.SurvivesUntil).Rfc3339Copy())
	}
	status.Images = facts.Images
	if facts.Snapshot != nil {
		status.Snapshot = facts.Snapshot.DeepCopy()
		if t := status.Snapshot.InStepTime; t != nil {
			status.Snapshot.InStepTime = ptr.To(t.Rfc3339Copy())
		}
	}
	return ridesAlong(status, present)
}

// keep takes over what the last dry run of an earlier agent has said.
func (f *Facts) keep(present v1alpha1.NodeRecoveryStatus) {
	f.Forecast = present.Forecast
	if until := present.SurvivesOfflineUntil; until != nil {
		f.SurvivesUntil = until.Time
	}
	f.Findings = slices.Clone(f.Findings)
	for _, finding := range present.Findings {
		same := func(f v1alpha1.Finding) bool {
			return f.Reason == finding.Reason && f.Pod == finding.Pod && f.Object == finding.Object
		}
		if !slices.ContainsFunc(f.Findings, same) {
			f.Findings = append(f.Findings, finding)
		}
	}
}

// ridesAlong keeps the present snapshot, whose numbers change all the time, when nothing
// else has changed: by itself it is worth a write an hour, or one when the number of
// objects is another by a quarter, as when a node gets its pods.
func ridesAlong(status, present v1alpha1.NodeRecoveryStatus) v1alpha1.NodeRecoveryStatus {
	if status.Snapshot == nil || present.Snapshot == nil || status.Snapshot.InStepTime == nil || present.Snapshot.InStepTime == nil {
		return status
	}
	if ahead := status.Snapshot.InStepTime.Sub(present.Snapshot.InStepTime.Time); ahead < 0 || ahead >= snapshotEvery {
		return status
	}
	if was, is := present.Snapshot.Objects, status.Snapshot.Objects; 4*max(was-is, is-was) > max(was, is) {
		return status
	}
	same := status
	same.Snapshot = present.Snapshot
	if equality.Semantic.DeepEqual(same, present) {
		return same
	}
	return status
}

// worst are the findings that the status has room for, the worst first.
func worst(findings []v1alpha1.Finding) []v1alpha1.Finding {
	rank := map[v1alpha1.Severity]int{v1alpha1.SeverityBlocksNode: 0, v1alpha1.SeverityBlocksPod: 1, v1alpha1.SeveritySlows: 2}
	sorted := slices.SortedStableFunc(slices.Values(findings), func(a, b v1alpha1.Finding) int { return rank[a.Severity] - rank[b.Severity] })
	sorted = sorted[:min(maxFindings, len(sorted))]
	for i := range sorted {
		f := &sorted[i]
		f.Reason, f.Pod, f.Object, f.Message = cut(f.Reason, maxReason), cut(f.Pod, maxPod), cut(f.Object, maxMessage), cut(f.Message, maxMessage)
	}
	return sorted
}

// conditions of the node, in the order of the status.
func conditions(facts Facts) []metav1.Condition {
	unknown := func(kind, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: reason, Message: message}
	}
	fresh, serving, ready, warm := facts.Fresh, facts.Serving, facts.Ready, facts.Warm
	if fresh.Type == "" {
		fresh = unknown(v1alpha1.ConditionSnapshotFresh, v1alpha1.ReasonNotSynced, "Nothing was read yet.")
	}
	if serving.Type == "" {
		serving = NotInstalled()
	}
	if ready.Type == "" {
		ready = unknown(v1alpha1.ConditionRestartReady, v1alpha1.ReasonNotEvaluated, "No dry run was made yet.")
	}
	if warm.Type == "" {
		warm = unknown(v1alpha1.ConditionImagesWarm, v1alpha1.ReasonNotInstalled, "Images are kept by an agent that is installed.")
	}
	return []metav1.Condition{
		ready,
		fresh,
		warm,
		serving,
	}
}

// bounded is a record that the CRD accepts: a value that is too long must not keep the
// whole status from being written. Only the newest record carries pods.
func bounded(record v1alpha1.Recovery, newest bool) v1alpha1.Recovery {
	record = *record.DeepCopy()
	record.BootID = cut(record.BootID, maxBootID)
	record.IncompleteReason = cut(record.IncompleteReason, maxReason)
	if !newest {
		record.SlowestPods, record.HeldPods, record.Stages = nil, nil, nil
		return record
	}
	for i := range record.SlowestPods {
		pod := &record.SlowestPods[i]
		pod.Pod, pod.Reason = cut(pod.Pod, maxPod), cut(pod.Reason, maxReason)
		if i > 0 {
			pod.Steps = nil // the store has them; here they would take a quarter of the room
		}
	}
	for i := range record.HeldPods {
		pod := &record.HeldPods[i]
		pod.Pod, pod.Reason = cut(pod.Pod, maxPod), cut(pod.Reason, maxReason)
	}
	for i := range record.Stages {
		record.Stages[i].WaitedFor = cut(record.Stages[i].WaitedFor, maxPod)
	}
	return record
}

// cut shortens to a number of characters, as OpenAPI counts them.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	runes := slices.Collect(strings.SplitSeq(s, ""))
	return strings.Join(runes[:min(limit, len(runes))], "")
}
