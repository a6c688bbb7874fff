package report

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/api/v1alpha1"
)

// Serving is the condition LocalAPIServing of an agent that is installed between kubelet
// and the API server. Problem is why kubelet runs without it, nil if it does not.
func Serving(problem error) metav1.Condition {
	if problem != nil {
		return serving(metav1.ConditionFalse, v1alpha1.ReasonUnhooked, cut(problem.Error(), maxMessage))
	}
	return serving(metav1.ConditionTrue, v1alpha1.ReasonKubeletServed, "Kubelet talks to the agent.")
}

// ServingUnknown is Serving before kubelet was looked at.
func ServingUnknown() metav1.Condition {
	return serving(metav1.ConditionUnknown, v1alpha1.ReasonNotEvaluated, "Kubelet was not looked at yet.")
}

// ServingObserve is Serving while the policy wants nothing changed on the node.
func ServingObserve() metav1.Condition {
	return serving(metav1.ConditionFalse, v1alpha1.ReasonObserveOnly,
		"The policy's mode is Observe: kubelet talks to the API server itself, and the node does not come back while it is cut off.")
}

// NotInstalled is the condition LocalAPIServing of an agent that only measures.
func NotInstalled() metav1.Condition {
	return serving(metav1.ConditionFalse, v1alpha1.ReasonNotInstalled,
		"Kubelet talks to the API server itself: the node does not come back while it is cut off. Run rekindle-agent install on it.")
}

func serving(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: v1alpha1.ConditionLocalAPIServing, Status: status, Reason: reason, Message: message}
}
