package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CacheWarmup lists what a node keeps ready beside the closure of its own pods.
type CacheWarmup struct {
	// resources are collections of API objects that the node mirrors for clients on it.
	// The node's identity must be allowed to list and watch them: bind a ClusterRole with
	// the label rekindle.edge/aggregate-to-node. Unset: none.
	// +optional
	// +listType=map
	// +listMapKey=group
	// +listMapKey=resource
	// +kubebuilder:validation:MaxItems=32
	Resources []WarmResource `json:"resources,omitempty"`

	// images says which container images are kept on the node.
	// +optional
	// +kubebuilder:default={}
	Images WarmImages `json:"images,omitempty,omitzero"`

	// pageCache says whether the files that a recovery reads are read ahead at boot.
	// +optional
	// +kubebuilder:default={}
	PageCache PageCache `json:"pageCache,omitempty,omitzero"`
}

// WarmResource names one collection of API objects.
//
// +kubebuilder:validation:XValidation:rule="!(size(self.group) == 0 && self.resource in ['secrets', 'configmaps'])",message="secrets and configmaps are mirrored only where a pod of the node refers to them; remove this entry"
// +kubebuilder:validation:XValidation:rule="!(self.group == 'coordination.k8s.io' && self.resource in ['leases', 'leasecandidates'])",message="leases are never mirrored, a stale one would elect two leaders; remove this entry"
type WarmResource struct {
	// group is the API group; empty for the core group.
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	Group string `json:"group"`

	// resource is the plural, lower-case name of the resource, such as "services".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	Resource string `json:"resource"`

	// namespaces limits the objects to these namespaces. Unset: all namespaces.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespaces []string `json:"namespaces,omitempty"`

	// labelSelector limits the objects to those with these labels. Unset: all objects.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// WarmImages says which images are pulled and kept.
type WarmImages struct {
	// fromWorkloads keeps the images of the pods that run on the node.
	// +optional
	// +kubebuilder:default=Enabled
	FromWorkloads Toggle `json:"fromWorkloads,omitempty"`

	// extra are further image references to pull and keep. Unset: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^(([a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[a-fA-F0-9:]+\])(:[0-9]{1,5})?/)?[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[a-f0-9]{64})?$`
	Extra []string `json:"extra,omitempty"`

	// pinning protects the kept images from kubelet's image garbage collection.
	// +optional
	// +kubebuilder:default=Enabled
	Pinning Toggle `json:"pinning,omitempty"`

	// maxSize is the disk budget for kept images; what is most important is kept first.
	// Unset: no budget.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="must be greater than 0, such as 10Gi"
	MaxSize *resource.Quantity `json:"maxSize,omitempty"`
}

// PageCache says whether files are read ahead at boot.
type PageCache struct {
	// mode is Enabled or Disabled. It gains on slow storage (eMMC, SD cards) only.
	// +optional
	// +kubebuilder:default=Disabled
	Mode Toggle `json:"mode,omitempty"`

	// maxSize is the most that is read ahead.
	// +optional
	// +kubebuilder:default="512Mi"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="must be greater than 0, such as 512Mi"
	MaxSize *resource.Quantity `json:"maxSize,omitempty"`
}

// Toggle is Enabled or Disabled.
// +kubebuilder:validation:Enum=Enabled;Disabled
type Toggle string

const (
	// ToggleEnabled switches a feature on.
	ToggleEnabled Toggle = "Enabled"
	// ToggleDisabled switches a feature off.
	ToggleDisabled Toggle = "Disabled"
)
