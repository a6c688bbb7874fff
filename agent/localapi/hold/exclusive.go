package hold

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rekindle.edge/agent/snapshot"
)

var (
	claims            = snapshot.Pods.GroupVersion().WithResource("persistentvolumeclaims")
	persistentVolumes = snapshot.Pods.GroupVersion().WithResource("persistentvolumes")
	attachments       = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "volumeattachments"}
)

// volumes finds a stored object.
type volumes interface {
	Get(resource schema.GroupVersionResource, namespace, name string) (snapshot.Object, bool)
}

// exclusive says whether what a VolumeAttachment attaches may be used by one node alone,
// as far as the node knows. While nobody can say whether it was attached elsewhere
// meanwhile, a second mount would destroy what is on it.
func exclusive(attachment []byte, stored volumes) bool {
	volume, ok := stored.Get(persistentVolumes, "", volumeOf(attachment))
	if !ok {
		return true
	}
	var pv corev1.PersistentVolume
	_ = json.Unmarshal(volume.Raw, &pv) // unreadable: as one that says nothing
	return !slices.Contains(pv.Spec.AccessModes, corev1.ReadWriteMany)
}

// volumeOf is the name of the volume that an attachment attaches; empty: it has none.
func volumeOf(attachment []byte) string {
	var a storagev1.VolumeAttachment
	if json.Unmarshal(attachment, &a) != nil || a.Spec.Source.PersistentVolumeName == nil {
		return ""
	}
	return *a.Spec.Source.PersistentVolumeName
}
