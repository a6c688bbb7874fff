package hold

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"rekindle.edge/agent/snapshot"
)

// Pod is one that is held back.
type Pod struct {
	UID string
	// Name is namespace/name.
	Name string
	// Claim is that of the volume that it waits for.
	Claim string
}

// waiting are the pods that use one of the volumes, which are sorted.
func waiting(pods []snapshot.Object, held []string, stored volumes) []Pod {
	var found []Pod
	for _, object := range pods {
		var pod corev1.Pod
		if json.Unmarshal(object.Raw, &pod) != nil || over(&pod) {
			continue
		}
		for _, volume := range pod.Spec.Volumes {
			claim := claimOf(&pod, volume)
			if claim == "" {
				continue
			}
			var pvc corev1.PersistentVolumeClaim
			raw, ok := stored.Get(claims, object.Namespace, claim)
			if !ok || json.Unmarshal(raw.Raw, &pvc) != nil {
				continue
			}
			if _, is := slices.BinarySearch(held, pvc.Spec.VolumeName); is {
				found = append(found, Pod{UID: string(object.UID), Name: object.Namespace + "/" + object.Name, Claim: claim})
				break
			}
		}
	}
	return found
}

func over(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// claimOf is the claim behind a pod's volume; empty: there is none.
func claimOf(pod *corev1.Pod, volume corev1.Volume) string {
	switch {
	case volume.PersistentVolumeClaim != nil:
		return volume.PersistentVolumeClaim.ClaimName
	case volume.Ephemeral != nil:
		return pod.Name + "-" + volume.Name
	}
	return ""
}
