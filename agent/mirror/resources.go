package mirror

import (
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
	// podCertificates are there since 1.37 by default.
	podCertificates = schema.GroupVersionResource{Group: "certificates.k8s.io", Version: "v1", Resource: "podcertificaterequests"}
	trustBundles    = schema.GroupVersionResource{Group: "certificates.k8s.io", Version: "v1beta1", Resource: "clustertrustbundles"}
)

// objectSet is a set of single objects, or of whole collections.
type objectSet map[snapshot.Scope]bool

func (s objectSet) add(resource schema.GroupVersionResource, namespace, name string) {
	if name != "" {
		s[snapshot.Scope{Resource: resource, Namespace: namespace, Name: name}] = true
	}
}
