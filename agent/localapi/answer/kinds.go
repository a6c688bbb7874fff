package answer

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// irregular are the kinds that do not follow from the resource by dropping the plural.
var irregular = map[string]string{
	"configmaps": "ConfigMap", "csidrivers": "CSIDriver", "csinodes": "CSINode", "csistoragecapacities": "CSIStorageCapacity",
	"endpoints": "Endpoints", "endpointslices": "EndpointSlice", "serviceaccounts": "ServiceAccount",
	"persistentvolumes": "PersistentVolume", "persistentvolumeclaims": "PersistentVolumeClaim",
	"volumeattachments": "VolumeAttachment", "runtimeclasses": "RuntimeClass", "storageclasses": "StorageClass",
	"priorityclasses": "PriorityClass", "resourceclaims": "ResourceClaim", "resourceslices": "ResourceSlice",
	"clustertrustbundles": "ClusterTrustBundle", "podcertificaterequests": "PodCertificateRequest",
	"networkpolicies": "NetworkPolicy", "ingresses": "Ingress", "ingressclasses": "IngressClass",
	"daemonsets": "DaemonSet", "replicasets": "ReplicaSet", "statefulsets": "StatefulSet", "cronjobs": "CronJob",
	"limitranges": "LimitRange", "resourcequotas": "ResourceQuota", "servicecidrs": "ServiceCIDR", "ipaddresses": "IPAddress",
	"noderecoveries": "NodeRecovery", "edgerecoverypolicies": "EdgeRecoveryPolicy",
	"customresourcedefinitions": "CustomResourceDefinition",
}

// typeOf is the type of a resource's objects: what one of them says, or a guess by the
// resource's name when there is none.
func typeOf(resource schema.GroupVersionResource, sample metav1.TypeMeta) metav1.TypeMeta {
	if sample.Kind != "" && sample.APIVersion != "" {
		return sample
	}
	kind, ok := irregular[resource.Resource]
	if !ok && resource.Resource != "" {
		singular := strings.TrimSuffix(resource.Resource, "s")
		if stem, ok := strings.CutSuffix(resource.Resource, "ies"); ok {
			singular = stem + "y"
		}
		kind = strings.ToUpper(singular[:1]) + singular[1:]
	}
	return metav1.TypeMeta{Kind: kind, APIVersion: resource.GroupVersion().String()}
}
