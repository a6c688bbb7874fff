package mirror

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rekindle.edge/agent/snapshot"
)

// lookup gives an object that is in the snapshot.
type lookup func(resource schema.GroupVersionResource, namespace, name string) (snapshot.Object, bool)

// closure is what the node keeps because of its pods.
type closure struct {
	// watched are secrets and configmaps, one scope each, and cluster trust bundles.
	watched objectSet
	// got are objects that a node may get and not list.
	got objectSet
	// tokens of each pod, by its UID.
	tokens map[string]podTokens
}

// podTokens are the tokens that one pod wants.
type podTokens struct {
	Pod     podName
	Account string
	Sources []tokenSource
}

type podName struct{ Namespace, Name, UID string }

// pod is a pod of the node with what it needs.
type pod struct {
	podName
	account string
	needs   podNeeds
}

// closeOver follows the pods' references: what they name themselves, and from claims over
// volumes to attachments, as far as the snapshot has them. Node is this node's name.
func closeOver(node string, all []pod, get lookup) closure {
	c := closure{watched: objectSet{}, got: objectSet{}, tokens: map[string]podTokens{}}
	c.got.add(csiNodes, "", node)
	for _, pod := range all {
		sources := slices.Clone(pod.needs.tokens)
		drivers := slices.Clone(pod.needs.drivers)
		for scope := range pod.needs.objects {
			switch scope.Resource {
			case secrets, configMaps:
				c.watched[scope] = true
			case claims:
				c.got[scope] = true
				if driver := c.follow(node, scope, get); driver != "" {
					drivers = append(drivers, driver)
				}
			default:
				c.got[scope] = true
			}
		}
		if pod.needs.trustBundles {
			c.watched[snapshot.Scope{Resource: trustBundles}] = true
		}
		for _, driver := range drivers {
			sources = append(sources, driverTokens(driver, get)...)
		}
		if len(sources) > 0 && pod.account != "" {
			c.tokens[pod.UID] = podTokens{Pod: pod.podName, Account: pod.account, Sources: unique(sources)}
		}
	}
	return c
}

// follow goes from a claim to its volume, the volume's secrets and its attachment, and
// returns the volume's CSI driver.
func (c closure) follow(node string, claim snapshot.Scope, get lookup) string {
	var pvc corev1.PersistentVolumeClaim
	if !read(get, claim, &pvc) || pvc.Spec.VolumeName == "" {
		return ""
	}
	scope := snapshot.Scope{Resource: volumes, Name: pvc.Spec.VolumeName}
	c.got[scope] = true
	var pv corev1.PersistentVolume
	if !read(get, scope, &pv) {
		return ""
	}
	for _, secret := range volumeSecrets(&pv) {
		c.watched.add(secrets, secret.Namespace, secret.Name)
	}
	if pv.Spec.CSI == nil {
		return ""
	}
	var driver storagev1.CSIDriver
	known := read(get, snapshot.Scope{Resource: csiDrivers, Name: pv.Spec.CSI.Driver}, &driver)
	if !known || driver.Spec.AttachRequired == nil || *driver.Spec.AttachRequired {
		c.got.add(attachments, "", attachmentName(pv.Spec.CSI.VolumeHandle, pv.Spec.CSI.Driver, node))
	}
	return pv.Spec.CSI.Driver
}

// attachmentName is the name that kubelet looks an attachment up by.
func attachmentName(handle, driver, node string) string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(handle+driver+node)))
}

// volumeSecrets are the secrets of a volume that kubelet may see.
func volumeSecrets(pv *corev1.PersistentVolume) []corev1.SecretReference {
	var found []corev1.SecretReference
	claimNamespace := ""
	if pv.Spec.ClaimRef != nil {
		claimNamespace = pv.Spec.ClaimRef.Namespace
	}
	// Volumes of old leave the namespace out and mean the claim's.
	add := func(references ...*corev1.SecretReference) {
		for _, reference := range references {
			if reference == nil || reference.Name == "" {
				continue
			}
			secret := *reference
			if secret.Namespace == "" {
				secret.Namespace = claimNamespace
			}
			found = append(found, secret)
		}
	}
	switch source := pv.Spec.PersistentVolumeSource; {
	case source.CSI != nil:
		add(source.CSI.NodePublishSecretRef, source.CSI.NodeStageSecretRef, source.CSI.NodeExpandSecretRef)
	case source.AzureFile != nil:
		secret := &corev1.SecretReference{Name: source.AzureFile.SecretName}
		if source.AzureFile.SecretNamespace != nil {
			secret.Namespace = *source.AzureFile.SecretNamespace
		}
		add(secret)
	case source.CephFS != nil:
		add(source.CephFS.SecretRef)
	case source.Cinder != nil:
		add(source.Cinder.SecretRef)
	case source.FlexVolume != nil:
		add(source.FlexVolume.SecretRef)
	case source.RBD != nil:
		add(source.RBD.SecretRef)
	case source.ScaleIO != nil:
		add(source.ScaleIO.SecretRef)
	case source.ISCSI != nil:
		add(source.ISCSI.SecretRef)
	case source.StorageOS != nil && source.StorageOS.SecretRef != nil:
		add(&corev1.SecretReference{Namespace: source.StorageOS.SecretRef.Namespace, Name: source.StorageOS.SecretRef.Name})
	}
	return found
}

// driverTokens are the tokens that kubelet hands to a CSI driver with a pod's volume.
func driverTokens(name string, get lookup) []tokenSource {
	var driver storagev1.CSIDriver
	if !read(get, snapshot.Scope{Resource: csiDrivers, Name: name}, &driver) {
		return nil
	}
	var sources []tokenSource
	for _, request := range driver.Spec.TokenRequests {
		source := tokenSource{Audience: request.Audience, ExpirationSeconds: defaultTokenSeconds}
		if request.ExpirationSeconds != nil {
			source.ExpirationSeconds = *request.ExpirationSeconds
		}
		sources = append(sources, source)
	}
	return sources
}

func unique(sources []tokenSource) []tokenSource {
	var out []tokenSource
	for _, source := range sources {
		if !slices.Contains(out, source) {
			out = append(out, source)
		}
	}
	return out
}

// read decodes an object of the snapshot. What cannot be decoded counts as not there: a
// reference that is not followed is a missing object, never a wrong one.
func read(get lookup, scope snapshot.Scope, into any) bool {
	found, ok := get(scope.Resource, scope.Namespace, scope.Name)
	return ok && json.Unmarshal(found.Raw, into) == nil
}
