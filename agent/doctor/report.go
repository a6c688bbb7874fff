// Package doctor tells a person on the node whether it would come back, and why not: by
// asking the running agent, or by a dry run of its own over a copy of the store.
package doctor

import (
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/api/v1alpha1"
)

// Where a report comes from.
const (
	FromAgent = "agent"
	FromStore = "store"
)

// Report is the whole verdict.
type Report struct {
	// Ready is True, False or Unknown; Reason and Message say why.
	Ready   metav1.ConditionStatus `json:"ready"`
	Reason  string                 `json:"reason"`
	Message string                 `json:"message"`
	// Findings are all of them, the worst first.
	Findings             []v1alpha1.Finding `json:"findings"`
	SurvivesOfflineUntil *metav1.Time       `json:"survivesOfflineUntil,omitempty"`
	// Forecast of the next restart, which says too that there is no history; nil: there was no
	// dry run. TargetSeconds is what it is held against.
	Forecast      *v1alpha1.Forecast `json:"forecast,omitempty"`
	TargetSeconds int32              `json:"targetSeconds,omitempty"`
	// Source is agent, or store when the agent did not answer.
	Source string `json:"source"`
}

// ExitCode is 0 when the node would come back, 1 when it or a pod of it would not, 2 when
// that cannot be told.
func (r Report) ExitCode() int {
	switch r.Ready {
	case metav1.ConditionTrue:
		return 0
	case metav1.ConditionFalse:
		return 1
	}
	return 2
}

// Print writes the report in plain words.
func (r Report) Print(out io.Writer) error {
	var text strings.Builder
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(&text, format+"\n", args...) }
	switch r.Ready {
	case metav1.ConditionTrue:
		say("This node would come back by itself if it restarted now, cut off.")
	case metav1.ConditionFalse:
		say("This node, or a pod of it, would NOT come back if it restarted now, cut off.")
	default:
		say("Whether this node would come back cannot be told. %s", r.Message)
	}
	for _, severity := range []struct {
		name  v1alpha1.Severity
		title string
	}{
		{v1alpha1.SeverityBlocksNode, "Keeps the whole node from coming back"},
		{v1alpha1.SeverityBlocksPod, "Keeps one pod from coming back"},
		{v1alpha1.SeveritySlows, "Slows the recovery, or needs care"},
	} {
		first := true
		for _, f := range r.Findings {
			if f.Severity != severity.name {
				continue
			}
			if first {
				say("\n%s:", severity.title)
				first = false
			}
			say("  %s", strings.Join(strings.Fields(f.Reason+" "+f.Pod+" "+f.Object), "  "))
			say("      %s", f.Message)
		}
	}
	say("")
	say("%s", r.forecast())
	if r.SurvivesOfflineUntil == nil {
		say("Nothing is known that would break a restart by running out.")
	} else {
		say("A restart would break, or the node would not join its cluster again by itself, from %s on: a credential runs out then.", r.SurvivesOfflineUntil.UTC().Format(time.RFC3339))
	}
	if r.Source == FromStore {
		say("The agent does not answer: this is from a copy of its store, without what only the running agent knows.")
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// forecast in words.
func (r Report) forecast() string {
	f := r.Forecast
	if f == nil || f.BasedOn == 0 {
		return "No forecast: no restart of this node was measured to its end yet."
	}
	restarts := fmt.Sprintf("%d restarts", f.BasedOn)
	if f.BasedOn == 1 {
		restarts = "1 restart"
	}
	held := "within"
	if f.WithinTarget != v1alpha1.TruthTrue {
		held = "LONGER than"
	}
	text := fmt.Sprintf("Forecast: %s from kernel start until the last pod is Ready, %s the target of %d s, by %s of this node.",
		(time.Duration(f.TotalMilliseconds) * time.Millisecond).Round(100*time.Millisecond), held, r.TargetSeconds, restarts)
	if f.SlowestStage != "" {
		text += " The stage " + f.SlowestStage + " takes most of it."
	}
	return text
}
