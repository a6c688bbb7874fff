package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// StartupOrdering is a list of stages that open one after the other.
type StartupOrdering struct {
	// stages are opened in this order; pods of no stage come last. Static pods and pods of
	// priority 2000000000 and above come before all stages unless a stage selects them.
	// Unset: one stage, the most important pods first.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Stages []Stage `json:"stages,omitempty"`
}

// Stage is a group of pods that start together.
type Stage struct {
	// name is unique in the policy; records and events use it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// pods selects the stage's pods: those that any entry selects.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Pods []PodSelector `json:"pods"`

	// waitFor is what the stage's pods must reach before the next stage opens.
	// +optional
	// +kubebuilder:default=Ready
	WaitFor WaitFor `json:"waitFor,omitempty"`

	// timeoutSeconds opens the next stage even if this one is not complete, in seconds:
	// a broken pod never holds the node.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=600
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`

	// maxParallel is how many pods of the stage start at once.
	// Unset: as many as suits the node's cores.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	MaxParallel *int32 `json:"maxParallel,omitempty"`
}

// PodSelector selects pods that meet all of its fields that are set.
//
// +kubebuilder:validation:XValidation:rule="has(self.namespaces) || has(self.labelSelector) || has(self.priorityClassNames) || self.source == 'Static'",message="selects nothing: set namespaces, labelSelector, priorityClassNames or source: Static (labelSelector: {} selects every pod)"
type PodSelector struct {
	// namespaces of the pods. Unset: any.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespaces []string `json:"namespaces,omitempty"`

	// labelSelector selects by the pods' labels; {} selects every pod. Unset: any labels.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// priorityClassNames of the pods. Unset: any.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	PriorityClassNames []string `json:"priorityClassNames,omitempty"`

	// source is Any, or Static: only pods from manifests on the node's own disk.
	// +optional
	// +kubebuilder:default=Any
	Source PodSource `json:"source,omitempty"`
}

// WaitFor is the state that a stage waits for.
// +kubebuilder:validation:Enum=Started;Ready
type WaitFor string

const (
	// WaitForStarted waits until every container of the pod has started.
	WaitForStarted WaitFor = "Started"
	// WaitForReady waits until the pod is Ready with this boot's containers.
	WaitForReady WaitFor = "Ready"
)

// PodSource says where kubelet has a pod from.
// +kubebuilder:validation:Enum=Any;Static
type PodSource string

const (
	// PodSourceAny is a pod from anywhere.
	PodSourceAny PodSource = "Any"
	// PodSourceStatic is a pod from a manifest on the node's disk.
	PodSourceStatic PodSource = "Static"
)
