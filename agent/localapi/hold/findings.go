package hold

import (
	"time"

	"rekindle.edge/api/v1alpha1"
)

// told are the findings of what is held, or was a while ago.
type told struct {
	pods, list     []v1alpha1.Finding
	podsAt, listAt time.Time
}

// Findings tell what is held back, and for a while what was.
func (h *Holding) Findings() []v1alpha1.Finding {
	pods := h.Pods()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.objects == nil {
		return nil
	}
	now := h.clock.Now()
	if len(pods) > 0 {
		h.told.pods, h.told.podsAt = nil, now
		for _, pod := range pods {
			h.told.pods = append(h.told.pods, v1alpha1.Finding{
				Reason: v1alpha1.ReasonAttachedVolumeNotSynced, Severity: v1alpha1.SeverityBlocksPod, Pod: pod.Name,
				Object:  "persistentvolumeclaims/" + pod.Claim,
				Message: "After a restart the pod waits until the API server is heard: its volume may be attached elsewhere. Bring the link back, or set offline.attachedVolumes: Start if no other node can use the volume.",
			})
		}
	}
	if trusted, why := h.objects.Trusted(); !trusted && h.refused {
		h.told.listAt, h.told.list = now, []v1alpha1.Finding{{
			Reason: v1alpha1.ReasonPodListNotServed, Severity: v1alpha1.SeverityBlocksNode,
			Message: "Kubelet is given no pods until the API server answers, for the stored list may lack some, whose data it would delete: " + why,
		}}
	}
	var all []v1alpha1.Finding
	if len(h.told.pods) > 0 && now.Sub(h.told.podsAt) < shown {
		all = append(all, h.told.pods...)
	}
	if len(h.told.list) > 0 && now.Sub(h.told.listAt) < shown {
		all = append(all, h.told.list...)
	}
	return all
}
