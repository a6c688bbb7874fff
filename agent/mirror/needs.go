package mirror

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"rekindle.edge/agent/snapshot"
)

// tokenSource is a place in a pod that wants a token.
type tokenSource struct {
	Audience          string
	ExpirationSeconds int64
}

// defaultTokenSeconds is what the API server writes into a projection that says nothing.
const defaultTokenSeconds = 3600

// Use is one place in a pod that refers to an object.
type Use struct {
	snapshot.Scope
	// Place in the pod, such as volume "tls".
	Place string
	// Optional: the pod starts without it, once it is known not to exist.
	Optional bool
	// Waived: the pod starts also when nobody can say whether it exists.
	Waived bool
	// Keys of the secret or configmap that the pod does not start without.
	Keys []string
}

// podNeeds is what one pod refers to, by its own text alone.
type podNeeds struct {
	// uses are the references, one by one; objects is what they come to.
	uses []Use
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
	use := Use{}
	add := func(resource schema.GroupVersionResource, name string, optional bool, keys ...string) {
		use.Scope = snapshot.Scope{Resource: resource, Namespace: pod.Namespace, Name: name}
		use.Optional, use.Keys = optional, keys
		needs.use(use)
	}
	// Kubelet starts a container whose image is there without either.
	use.Place, use.Waived = "serviceAccountName", true
	add(accounts, pod.Spec.ServiceAccountName, true)
	use.Place = "imagePullSecrets"
	for _, secret := range pod.Spec.ImagePullSecrets {
		add(secrets, secret.Name, true)
	}
	container := func(name string, gone bool, envFrom []corev1.EnvFromSource, env []corev1.EnvVar) {
		use.Place, use.Waived = fmt.Sprintf("container %q", name), gone
		for _, source := range envFrom {
			if ref := source.SecretRef; ref != nil {
				add(secrets, ref.Name, ptr.Deref(ref.Optional, false))
			}
			if ref := source.ConfigMapRef; ref != nil {
				add(configMaps, ref.Name, ptr.Deref(ref.Optional, false))
			}
		}
		for _, variable := range env {
			if from := variable.ValueFrom; from != nil && from.SecretKeyRef != nil {
				add(secrets, from.SecretKeyRef.Name, ptr.Deref(from.SecretKeyRef.Optional, false), from.SecretKeyRef.Key)
			} else if from != nil && from.ConfigMapKeyRef != nil {
				add(configMaps, from.ConfigMapKeyRef.Name, ptr.Deref(from.ConfigMapKeyRef.Optional, false), from.ConfigMapKeyRef.Key)
			}
		}
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		container(c.Name, false, c.EnvFrom, c.Env)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		// They are not started again.
		container(c.Name, true, c.EnvFrom, c.Env)
	}
	for i := range pod.Spec.Volumes {
		needs.volume(pod, &pod.Spec.Volumes[i])
	}
	use.Place, use.Waived = "resourceClaims", false
	for name := range claimsOf(pod) {
		add(resourceClaims, name, false)
	}
	return needs
}

func (n *podNeeds) use(u Use) {
	if u.Name != "" {
		n.uses = append(n.uses, u)
		n.objects[u.Scope] = true
	}
}

func (n *podNeeds) volume(pod *corev1.Pod, volume *corev1.Volume) {
	place := fmt.Sprintf("volume %q", volume.Name)
	add := func(resource schema.GroupVersionResource, name string, optional *bool, items ...corev1.KeyToPath) {
		u := Use{Scope: snapshot.Scope{Resource: resource, Namespace: pod.Namespace, Name: name}, Place: place, Optional: ptr.Deref(optional, false)}
		for _, item := range items {
			u.Keys = append(u.Keys, item.Key)
		}
		n.use(u)
	}
	local := func(reference *corev1.LocalObjectReference) {
		if reference != nil {
			add(secrets, reference.Name, nil)
		}
	}
	switch {
	case volume.Secret != nil:
		add(secrets, volume.Secret.SecretName, volume.Secret.Optional, volume.Secret.Items...)
	case volume.ConfigMap != nil:
		add(configMaps, volume.ConfigMap.Name, volume.ConfigMap.Optional, volume.ConfigMap.Items...)
	case volume.Projected != nil:
		for _, source := range volume.Projected.Sources {
			switch {
			case source.Secret != nil:
				add(secrets, source.Secret.Name, source.Secret.Optional, source.Secret.Items...)
			case source.ConfigMap != nil:
				add(configMaps, source.ConfigMap.Name, source.ConfigMap.Optional, source.ConfigMap.Items...)
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
		add(claims, volume.PersistentVolumeClaim.ClaimName, nil)
	case volume.Ephemeral != nil:
		add(claims, pod.Name+"-"+volume.Name, nil)
	case volume.CSI != nil:
		local(volume.CSI.NodePublishSecretRef)
		n.drivers = append(n.drivers, volume.CSI.Driver)
	case volume.AzureFile != nil:
		add(secrets, volume.AzureFile.SecretName, nil)
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
