package table

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// unreachable is the reason that the node controller gives pods of a lost node.
const unreachable = "NodeLost"

var podColumns = []metav1.TableColumnDefinition{
	nameColumn,
	column("Ready", "Containers that are ready, and all"),
	column("Status", "State of the containers"),
	column("Restarts", "How often containers were restarted, and when last"),
	ageColumn,
	wide("IP", "Address of the pod"),
	wide("Node", "Node of the pod"),
	wide("Nominated Node", "Node that is being made free for the pod"),
	wide("Readiness Gates", "Further conditions of readiness that are met, and all"),
}

func podRow(pod *corev1.Pod) metav1.TableRow {
	s := summarise(pod)
	restarts := fmt.Sprint(s.restarts)
	if s.restarts != 0 && !s.last.IsZero() {
		restarts = fmt.Sprintf("%d (%s ago)", s.restarts, since(s.last))
	}
	ip := ""
	if len(pod.Status.PodIPs) > 0 {
		ip = pod.Status.PodIPs[0].IP
	}
	row := cells(pod.Name, fmt.Sprintf("%d/%d", s.ready, s.total), s.state, restarts, since(pod.CreationTimestamp),
		or(ip, "<none>"), or(pod.Spec.NodeName, "<none>"), or(pod.Status.NominatedNodeName, "<none>"), gates(pod))
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		row.Conditions = completed(string(corev1.PodSucceeded), "The pod has completed successfully.")
	case corev1.PodFailed:
		row.Conditions = completed(string(corev1.PodFailed), "The pod failed.")
	}
	return row
}

func completed(reason, message string) []metav1.TableRowCondition {
	return []metav1.TableRowCondition{{Type: metav1.RowCompleted, Status: metav1.ConditionTrue, Reason: reason, Message: message}}
}

func gates(pod *corev1.Pod) string {
	if len(pod.Spec.ReadinessGates) == 0 {
		return "<none>"
	}
	met := 0
	for _, gate := range pod.Spec.ReadinessGates {
		if conditionTrue(pod, gate.ConditionType) {
			met++
		}
	}
	return fmt.Sprintf("%d/%d", met, len(pod.Spec.ReadinessGates))
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &pod.Status.Conditions[i]
}

func conditionTrue(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	c := condition(pod, kind)
	return c != nil && c.Status == corev1.ConditionTrue
}
