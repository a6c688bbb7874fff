package timeline

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Annotations of a static pod: of its mirror at the API server, and of the pod as kubelet
// itself knows it, which came from elsewhere.
const (
	mirrorAnnotation = "kubernetes.io/config.mirror"
	sourceAnnotation = "kubernetes.io/config.source"
	sourceAPI        = "api"
	staticKeyPrefix  = "static/"
)

// reasonReadinessGates is kubelet's reason for Ready=False when the containers are ready
// and something outside of the node is not.
const reasonReadinessGates = "ReadinessGatesNotReady"

// Pod is what a recovery needs to know of a pod as the API server shows it.
type Pod struct {
	// Key stays the same across a restart: the UID, or the name of a static pod, whose
	// mirror may be re-created under another UID.
	Key string
	// Name is namespace/name.
	Name string
	// Ready is the Ready condition.
	Ready bool
	// Alive is readiness as kubelet last reported it: the node controller sets Ready to
	// False while a node is out of reach, and leaves the containers' condition alone.
	Alive bool
	// Finished pods run no more: Succeeded or Failed.
	Finished bool
	// Restarts says whether the pod comes back after it ended (restartPolicy Always).
	Restarts bool
	// Deleting pods have a deletion timestamp.
	Deleting bool
	// Containers are the ids of the containers that the status speaks about.
	Containers []string
	// ReadySince is when Ready became True, by the node's wall clock, cut to seconds.
	ReadySince time.Time
	// Reason why the pod is not ready.
	Reason string
}

// ViewPod reads a pod as the API server shows it.
func ViewPod(pod *corev1.Pod) Pod {
	view := Pod{
		Key:      Key(string(pod.UID), pod.Namespace+"/"+pod.Name, pod.Annotations),
		Name:     pod.Namespace + "/" + pod.Name,
		Finished: pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed,
		Restarts: pod.Spec.RestartPolicy == corev1.RestartPolicyAlways || pod.Spec.RestartPolicy == "",
		Deleting: pod.DeletionTimestamp != nil,
		Reason:   notReadyReason(pod),
	}
	if ready := condition(pod, corev1.PodReady); ready != nil {
		view.Ready = ready.Status == corev1.ConditionTrue
		view.Alive = view.Ready
		if view.Ready {
			view.ReadySince = ready.LastTransitionTime.Time
		} else if ready.Reason != reasonReadinessGates {
			containers := condition(pod, corev1.ContainersReady)
			view.Alive = containers != nil && containers.Status == corev1.ConditionTrue
		}
	}
	for _, status := range pod.Status.ContainerStatuses {
		// The status has the id with the name of the runtime before it, as in containerd://ID.
		id := status.ContainerID
		if _, plain, ok := strings.Cut(id, "://"); ok {
			id = plain
		}
		view.Containers = append(view.Containers, id)
	}
	return view
}

// Key of a pod with this UID, name (namespace/name) and annotations.
func Key(uid, name string, annotations map[string]string) string {
	_, mirror := annotations[mirrorAnnotation]
	if source, known := annotations[sourceAnnotation]; mirror || (known && source != sourceAPI) {
		return staticKeyPrefix + name
	}
	return uid
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// notReadyReason is the most telling reason that the status has: what a container waits
// for, how it ended, the pod's own, that of the condition.
func notReadyReason(pod *corev1.Pod) string {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, status := range statuses {
			waiting := status.State.Waiting
			// These two are how every container begins; they say nothing.
			if waiting != nil && waiting.Reason != "" && waiting.Reason != "PodInitializing" && waiting.Reason != "ContainerCreating" {
				return waiting.Reason
			}
		}
	}
	for _, status := range pod.Status.ContainerStatuses {
		if ended := status.State.Terminated; ended != nil && ended.Reason != "" {
			return ended.Reason
		}
	}
	if pod.Status.Reason != "" {
		return pod.Status.Reason
	}
	if ready := condition(pod, corev1.PodReady); ready != nil && ready.Reason != "" {
		return ready.Reason
	}
	return string(pod.Status.Phase)
}
