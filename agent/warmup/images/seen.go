package images

import (
	"encoding/json"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"rekindle.edge/agent/snapshot"
)

// running are the pods of the snapshot that are not over.
func (k *Keeper) running() []*corev1.Pod {
	all, _ := k.Objects.List(snapshot.Pods)
	seen := map[string]decoded{}
	var pods []*corev1.Pod
	for _, object := range all {
		key := string(object.UID)
		d := k.pods[key]
		if d.pod == nil || d.version != object.ResourceVersion {
			d = decoded{object.ResourceVersion, &corev1.Pod{}}
			if json.Unmarshal(object.Raw, d.pod) != nil {
				continue
			}
		}
		seen[key] = d
		if !over(d.pod) {
			pods = append(pods, d.pod)
		}
	}
	k.pods = seen
	return pods
}

// calmDown lets registries be asked at once when the network has come back.
func (k *Keeper) calmDown() {
	k.mu.Lock()
	online := k.online
	k.online = false
	k.mu.Unlock()
	if online {
		clear(k.patience)
	}
}

// note keeps since when images are missing, and forgets what is not wanted.
func (k *Keeper) note(wanted []want, s stock, now time.Time) {
	missing := map[string]bool{}
	for _, w := range wanted {
		if _, here := s.images[w.reference]; here {
			continue
		}
		missing[w.reference] = true
		if _, known := k.missingSince[w.reference]; !known {
			k.missingSince[w.reference] = now
		}
	}
	gone := func(reference string) bool { return !missing[reference] }
	maps.DeleteFunc(k.missingSince, func(reference string, _ time.Time) bool { return gone(reference) })
	maps.DeleteFunc(k.failed, func(reference, _ string) bool { return gone(reference) })
	ids := map[string]bool{}
	for _, image := range s.images {
		ids[image.id] = true
	}
	maps.DeleteFunc(k.state.Damaged, func(id string, _ bool) bool { return !ids[id] })
}
