package table

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// summary is what the API server says of a pod in one line.
type summary struct {
	ready, total, restarts int
	last                   metav1.Time // restart
	state                  string
}

// add counts a container's restarts.
func (s *summary) add(status *corev1.ContainerStatus) {
	s.restarts += int(status.RestartCount)
	if ended := status.LastTerminationState.Terminated; ended != nil && s.last.Before(&ended.FinishedAt) {
		s.last = ended.FinishedAt
	}
}

func summarise(pod *corev1.Pod) summary {
	s := summary{total: len(pod.Spec.Containers), state: or(pod.Status.Reason, string(pod.Status.Phase))}
	if c := condition(pod, corev1.PodScheduled); c != nil && c.Reason == corev1.PodReasonSchedulingGated {
		s.state = corev1.PodReasonSchedulingGated
	}
	sidecars := map[string]bool{}
	for _, container := range pod.Spec.InitContainers {
		if container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			sidecars[container.Name] = true
			s.total++
		}
	}
	// Restarts of init containers that are done do not count once the pod is initialised.
	lasting := summary{}
	initialising := s.initContainers(pod, sidecars, &lasting)
	if !initialising || conditionTrue(pod, corev1.PodInitialized) {
		s.restarts, s.last = lasting.restarts, lasting.last
		s.containers(pod)
	}
	if pod.DeletionTimestamp != nil {
		switch {
		case pod.Status.Reason == unreachable:
			s.state = "Unknown"
		case pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed:
			s.state = "Terminating"
		}
	}
	return s
}

// initContainers says whether one of them is not done.
func (s *summary) initContainers(pod *corev1.Pod, sidecars map[string]bool, lasting *summary) bool {
	for i := range pod.Status.InitContainerStatuses {
		status := &pod.Status.InitContainerStatuses[i]
		s.add(status)
		sidecar := sidecars[status.Name]
		if sidecar {
			lasting.add(status)
		}
		ended, waiting := status.State.Terminated, status.State.Waiting
		switch {
		case ended != nil && ended.ExitCode == 0:
			continue
		case sidecar && status.Started != nil && *status.Started:
			if status.Ready {
				s.ready++
			}
			continue
		case ended != nil:
			s.state = "Init:" + endOf(ended)
		case waiting != nil && waiting.Reason != "" && waiting.Reason != "PodInitializing":
			s.state = "Init:" + waiting.Reason
		default:
			s.state = fmt.Sprintf("Init:%d/%d", i, len(pod.Spec.InitContainers))
		}
		return true
	}
	return false
}

func (s *summary) containers(pod *corev1.Pod) {
	running, failure := false, ""
	for i := len(pod.Status.ContainerStatuses) - 1; i >= 0; i-- {
		status := &pod.Status.ContainerStatuses[i]
		s.add(status)
		ended, waiting := status.State.Terminated, status.State.Waiting
		switch {
		case waiting != nil && waiting.Reason != "":
			s.state = waiting.Reason
		case ended != nil:
			s.state = endOf(ended)
			if ended.ExitCode != 0 {
				failure = s.state
			}
		case status.Ready && status.State.Running != nil:
			running = true
			s.ready++
		}
	}
	if s.state != "Completed" {
		return
	}
	switch {
	case running && conditionTrue(pod, corev1.PodReady):
		s.state = "Running"
	case failure != "":
		s.state = failure
	case running:
		s.state = "NotReady"
	}
}

func endOf(ended *corev1.ContainerStateTerminated) string {
	switch {
	case ended.Reason != "":
		return ended.Reason
	case ended.Signal != 0:
		return fmt.Sprintf("Signal:%d", ended.Signal)
	}
	return fmt.Sprintf("ExitCode:%d", ended.ExitCode)
}
