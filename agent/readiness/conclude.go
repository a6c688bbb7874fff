package readiness

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/api/v1alpha1"
)

// Sort puts findings in the order of the status, the worst first, and drops those that say
// the same of the same pod and object twice.
func Sort(all []v1alpha1.Finding) []v1alpha1.Finding {
	rank := map[v1alpha1.Severity]int{v1alpha1.SeverityBlocksNode: 0, v1alpha1.SeverityBlocksPod: 1, v1alpha1.SeveritySlows: 2}
	type key struct{ reason, pod, object string }
	seen := map[key]bool{}
	var kept []v1alpha1.Finding
	for _, f := range all {
		k := key{f.Reason, f.Pod, f.Object}
		if !seen[k] {
			seen[k] = true
			kept = append(kept, f)
		}
	}
	slices.SortStableFunc(kept, func(a, b v1alpha1.Finding) int { return rank[a.Severity] - rank[b.Severity] })
	return kept
}

// Conclude makes the condition RestartReady, without times, of sorted findings and of what
// could not be looked at: False when something blocks, its leading reason in front; else
// Unknown when something was not visible; else True.
func Conclude(sorted []v1alpha1.Finding, invisible []string) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionRestartReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonWouldComeBack}
	blocking := 0
	for _, f := range sorted {
		if f.Severity != v1alpha1.SeveritySlows {
			blocking++
		}
	}
	slowing := len(sorted) - blocking
	switch {
	case blocking > 0:
		first := sorted[0]
		c.Status, c.Reason = metav1.ConditionFalse, first.Reason
		c.Message = fmt.Sprintf("%s would keep the node, or pods of it, from coming back; the first: %s", count(blocking, "finding"), text(first))
	case len(invisible) > 0:
		c.Status, c.Reason = metav1.ConditionUnknown, v1alpha1.ReasonNotVisible
		c.Message = "Not everything could be looked at: " + strings.Join(invisible, "; ") + "."
	case slowing > 0:
		c.Message = fmt.Sprintf("The node would come back by itself, cut off; %s may slow it or need care.", count(slowing, "finding"))
	default:
		c.Message = "The node would come back by itself, cut off."
	}
	return c
}

func text(f v1alpha1.Finding) string {
	where := f.Pod
	if f.Object != "" {
		where = strings.TrimSpace(where + " " + f.Object)
	}
	if where == "" {
		return f.Message
	}
	return where + ": " + f.Message
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
