package served

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"rekindle.edge/agent/snapshot"
)

// volumes that a claim or a pod refers to by name.
var persistentVolumes = snapshot.Pods.GroupVersion().WithResource("persistentvolumes")

// Volumes finds a stored object.
type Volumes interface {
	Get(resource schema.GroupVersionResource, namespace, name string) (snapshot.Object, bool)
}

// Exclusive says whether what a VolumeAttachment attaches may be used by one node alone,
// as far as the node knows. While nobody can say whether it was attached elsewhere
// meanwhile, a second mount would destroy what is on it.
func Exclusive(attachment []byte, volumes Volumes) bool {
	source := decode(decode(decode(attachment)["spec"])["source"])
	volume, ok := volumes.Get(persistentVolumes, "", source.text("persistentVolumeName"))
	if !ok {
		return true
	}
	var modes []string
	spec := decode(decode(volume.Raw)["spec"])
	_ = json.Unmarshal(spec["accessModes"], &modes) // absent: none
	return !slices.Contains(modes, "ReadWriteMany")
}
