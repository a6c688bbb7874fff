package mirror

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rekindle.edge/agent/snapshot"
)

// Resources by the version that kubelet reads.
var (
	pods       = corev1.SchemeGroupVersion.WithResource("pods")
	nodes      = corev1.SchemeGroupVersion.WithResource("nodes")
	services   = corev1.SchemeGroupVersion.WithResource("services")
	secrets    = corev1.SchemeGroupVersion.WithResource("secrets")
	configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")
	accounts   = corev1.SchemeGroupVersion.WithResource("serviceaccounts")
	claims     = corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
	volumes    = corev1.SchemeGroupVersion.WithResource("persistentvolumes")

	attachments    = storagev1.SchemeGroupVersion.WithResource("volumeattachments")
	csiNodes       = storagev1.SchemeGroupVersion.WithResource("csinodes")
	csiDrivers     = storagev1.SchemeGroupVersion.WithResource("csidrivers")
	resourceClaims = resourcev1.SchemeGroupVersion.WithResource("resourceclaims")

	runtimeClasses = schema.GroupVersionResource{Group: "node.k8s.io", Version: "v1", Resource: "runtimeclasses"}
	endpointSlices = schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}
	trustBundles   = schema.GroupVersionResource{Group: "certificates.k8s.io", Version: "v1beta1", Resource: "clustertrustbundles"}
)

// objectSet is a set of single objects, or of whole collections.
type objectSet map[snapshot.Scope]bool

func (s objectSet) add(resource schema.GroupVersionResource, namespace, name string) {
	if name != "" {
		s[snapshot.Scope{Resource: resource, Namespace: namespace, Name: name}] = true
	}
}

// tokenSource is a place in a pod that wants a token.
type tokenSource struct {
	Audience          string
	ExpirationSeconds int64
}

// defaultTokenSeconds is what the API server writes into a projection that says nothing.
const defaultTokenSeconds = 3600

// podNeeds is what one pod refers to, by its own text alone.
type podNeeds struct {
	// objects are secrets, configmaps, claims, resource claims and the service account.
	objects objectSet
	// tokens of projected volumes.
	tokens []tokenSource
	// drivers of inline CSI volumes.
	drivers []string
	// trustBundles says that a volume projects cluster trust bundles.
	trustBundles bool
}

// over says whether a pod has run to its end and will not be started again. What such pods
// refer to is not kept. One that a shutdown ended may be started again.
func over(pod *corev1.Pod) bool {
	finished := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	return finished && pod.Spec.RestartPolicy != corev1.RestartPolicyAlways
}

// needsOf finds what the Node authorizer lets a node read because of this pod.
func needsOf(pod *corev1.Pod) podNeeds {
	needs := podNeeds{objects: objectSet{}}
	if over(pod) {
		return needs
	}
	add := func(resource schema.GroupVersionResource, name string) {
		needs.objects.add(resource, pod.Namespace, name)
	}
	add(accounts, pod.Spec.ServiceAccountName)
	for _, secret := range pod.Spec.ImagePullSecrets {
		add(secrets, secret.Name)
	}
	container := func(envFrom []corev1.EnvFromSource, env []corev1.EnvVar) {
		for _, source := range envFrom {
			if source.SecretRef != nil {
				add(secrets, source.SecretRef.Name)
			}
			if source.ConfigMapRef != nil {
				add(configMaps, source.ConfigMapRef.Name)
			}
		}
		for _, variable := range env {
			if from := variable.ValueFrom; from != nil && from.SecretKeyRef != nil {
				add(secrets, from.SecretKeyRef.Name)
			} else if from != nil && from.ConfigMapKeyRef != nil {
				add(configMaps, from.ConfigMapKeyRef.Name)
			}
		}
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		container(c.EnvFrom, c.Env)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		container(c.EnvFrom, c.Env)
	}
	for i := range pod.Spec.Volumes {
		needs.volume(pod, &pod.Spec.Volumes[i])
	}
	for name := range claimsOf(pod) {
		add(resourceClaims, name)
	}
	return needs
}

func (n *podNeeds) volume(pod *corev1.Pod, volume *corev1.Volume) {
	add := func(resource schema.GroupVersionResource, name string) { n.objects.add(resource, pod.Namespace, name) }
	local := func(reference *corev1.LocalObjectReference) {
		if reference != nil {
			add(secrets, reference.Name)
		}
	}
	switch {
	case volume.Secret != nil:
		add(secrets, volume.Secret.SecretName)
	case volume.ConfigMap != nil:
		add(configMaps, volume.ConfigMap.Name)
	case volume.Projected != nil:
		for _, source := range volume.Projected.Sources {
			switch {
			case source.Secret != nil:
				add(secrets, source.Secret.Name)
			case source.ConfigMap != nil:
				add(configMaps, source.ConfigMap.Name)
			case source.ClusterTrustBundle != nil:
				n.trustBundles = true
			case source.ServiceAccountToken != nil:
				token := tokenSource{Audience: source.ServiceAccountToken.Audience, ExpirationSeconds: defaultTokenSeconds}
				if seconds := source.ServiceAccountToken.ExpirationSeconds; seconds != nil {
					token.ExpirationSeconds = *seconds
				}
				n.tokens = append(n.tokens, token)
			}
		}
	case volume.PersistentVolumeClaim != nil:
		add(claims, volume.PersistentVolumeClaim.ClaimName)
	case volume.Ephemeral != nil:
		add(claims, pod.Name+"-"+volume.Name)
	case volume.CSI != nil:
		local(volume.CSI.NodePublishSecretRef)
		n.drivers = append(n.drivers, volume.CSI.Driver)
	case volume.AzureFile != nil:
		add(secrets, volume.AzureFile.SecretName)
	case volume.CephFS != nil:
		local(volume.CephFS.SecretRef)
	case volume.Cinder != nil:
		local(volume.Cinder.SecretRef)
	case volume.FlexVolume != nil:
		local(volume.FlexVolume.SecretRef)
	case volume.RBD != nil:
		local(volume.RBD.SecretRef)
	case volume.ScaleIO != nil:
		local(volume.ScaleIO.SecretRef)
	case volume.ISCSI != nil:
		local(volume.ISCSI.SecretRef)
	case volume.StorageOS != nil:
		local(volume.StorageOS.SecretRef)
	}
}

// claimsOf are the resource claims of a pod: named ones, and those that were made for it.
func claimsOf(pod *corev1.Pod) map[string]bool {
	names := map[string]bool{}
	for _, claim := range pod.Spec.ResourceClaims {
		if claim.ResourceClaimName != nil {
			names[*claim.ResourceClaimName] = true
		}
	}
	for _, status := range pod.Status.ResourceClaimStatuses {
		if status.ResourceClaimName != nil {
			names[*status.ResourceClaimName] = true
		}
	}
	if extended := pod.Status.ExtendedResourceClaimStatus; extended != nil && extended.ResourceClaimName != "" {
		names[extended.ResourceClaimName] = true
	}
	return names
}

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

// close follows the pods' references: what they name themselves, and from claims over
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
