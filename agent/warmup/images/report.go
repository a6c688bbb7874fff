package images

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/api/v1alpha1"
)

// publish makes the report of a plan.
func (k *Keeper) publish(spec *v1alpha1.NodeRecoverySpec, s v1alpha1.ImagesStatus) {
	for i := range s.Problems {
		if image := s.Problems[i].Image; len(image) > maxImage {
			s.Problems[i].Image = image[len(image)-maxImage:]
		}
	}
	s.Problems = s.Problems[:min(len(s.Problems), maxProblems)]
	suffix := ""
	if spec != nil && spec.Mode == v1alpha1.ModeObserve {
		suffix = " Mode Observe: none is pulled or pinned."
	}
	switch {
	case spec == nil:
		k.tell(nil, condition(metav1.ConditionUnknown, v1alpha1.ReasonNoPolicy, "No policy applies to the node."))
	case s.Present < s.Wanted:
		k.tell(&s, condition(metav1.ConditionFalse, v1alpha1.ReasonImagesMissing,
			fmt.Sprintf("%d of %d wanted images are on the node, see status.images.problems.%s", s.Present, s.Wanted, suffix)))
	default:
		k.tell(&s, condition(metav1.ConditionTrue, v1alpha1.ReasonImagesPresent, "Every wanted image is on the node."+suffix))
	}
}

func condition(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: v1alpha1.ConditionImagesWarm, Status: status, Reason: reason, Message: message}
}

func (k *Keeper) tell(s *v1alpha1.ImagesStatus, warm metav1.Condition) {
	k.mu.Lock()
	now := Report{Status: s, Warm: warm}
	if s == nil && warm.Reason == v1alpha1.ReasonRuntimeSilent {
		now.Status = k.report.Status
	}
	news := fmt.Sprint(now.Warm) != fmt.Sprint(k.report.Warm) || !same(now.Status, k.report.Status)
	k.report = now
	k.mu.Unlock()
	if news && k.Changed != nil {
		k.Changed()
	}
}

func same(a, b *v1alpha1.ImagesStatus) bool {
	if a == nil || b == nil {
		return a == b
	}
	return fmt.Sprint(*a) == fmt.Sprint(*b)
}
