package mirror

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

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
