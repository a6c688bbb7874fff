package mirror

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// settled says whether an object may be left alone for a while.
func settled(a answer) bool {
	if a.err != nil {
		// Older servers never let a node read service accounts.
		return a.scope.Resource == accounts && apierrors.IsForbidden(a.err)
	}
	switch a.scope.Resource {
	case claims:
		var claim corev1.PersistentVolumeClaim
		return a.found && json.Unmarshal(a.object.Raw, &claim) == nil && claim.Status.Phase == corev1.ClaimBound
	case attachments:
		var attachment storagev1.VolumeAttachment
		return a.found && json.Unmarshal(a.object.Raw, &attachment) == nil && attachment.Status.Attached
	case volumes:
		// Kubelet mounts no volume that does not name its claim by the UID, which the
		// controller fills in where the volume was made for a claim's name.
		var volume corev1.PersistentVolume
		return a.found && json.Unmarshal(a.object.Raw, &volume) == nil && volume.Status.Phase == corev1.VolumeBound &&
			volume.Spec.ClaimRef != nil && volume.Spec.ClaimRef.UID != ""
	case resourceClaims:
		return a.found
	}
	return true
}
