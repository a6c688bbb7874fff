package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// EdgeRecoveryPolicy says how the nodes that it selects come back after a restart,
// connected to the cluster or cut off from it, and its status says how they did.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=erp,categories=rekindle
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodes.matched`,description="Nodes that this policy selects"
// +kubebuilder:printcolumn:name="Restart-Ready",type=integer,JSONPath=`.status.nodes.restartReady`,description="Nodes that would come back by themselves if they restarted now, cut off"
// +kubebuilder:printcolumn:name="Target-S",type=integer,JSONPath=`.spec.target.recoverySeconds`,description="Seconds within which every expected pod shall be Ready after kernel start"
// +kubebuilder:printcolumn:name="P95-MS",type=integer,JSONPath=`.status.p95Milliseconds`,description="95th percentile of the measured recoveries, in milliseconds, of the slowest pool"
// +kubebuilder:printcolumn:name="Met",type=string,JSONPath=`.status.conditions[?(@.type=="TargetMet")].status`,description="Whether every pool meets its target"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Mode",type=string,priority=1,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Priority",type=integer,priority=1,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Accepted",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Accepted")].reason`
type EdgeRecoveryPolicy struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user wants of the selected nodes.
	// +required
	Spec EdgeRecoveryPolicySpec `json:"spec"`

	// status is what the controller found and what the nodes measured.
	// +optional
	Status EdgeRecoveryPolicyStatus `json:"status,omitempty,omitzero"`
}

// EdgeRecoveryPolicyList is a list of policies.
//
// +kubebuilder:object:root=true
type EdgeRecoveryPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []EdgeRecoveryPolicy `json:"items"`
}

// EdgeRecoveryPolicySpec selects nodes and says what they do.
//
// +kubebuilder:validation:XValidation:rule="has(self.nodeSelector) != has(self.nodePools)",message="set exactly one of nodeSelector and nodePools"
type EdgeRecoveryPolicySpec struct {
	// mode is Enforce, or Observe: measure and judge the nodes, change nothing on them.
	// +optional
	// +kubebuilder:default=Enforce
	Mode Mode `json:"mode,omitempty"`

	// priority decides between policies that select the same node: the higher one wins,
	// then the older one, then the one whose name sorts first. Policies are never merged.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Priority int32 `json:"priority,omitempty"`

	// nodeSelector selects nodes by their labels; {} selects every node.
	// Unset: nodePools selects them.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn', 'Exists', 'DoesNotExist'])",message="an operator of matchExpressions must be In, NotIn, Exists or DoesNotExist"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, (e.operator in ['In', 'NotIn']) == (has(e.values) && size(e.values) > 0))",message="operators In and NotIn need values; Exists and DoesNotExist take none"
	NodeSelector *metav1.LabelSelector `json:"nodeSelector,omitempty"`

	// nodePools selects the nodes of these pools: those whose label nodePoolLabelKey
	// has one of the names as its value. Unset: nodeSelector selects them.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	NodePools []NodePool `json:"nodePools,omitempty"`

	// nodePoolLabelKey is the key of the Node label that names a node's pool.
	// +optional
	// +kubebuilder:default="apps.openyurt.io/nodepool"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`
	NodePoolLabelKey string `json:"nodePoolLabelKey,omitempty"`

	// target is the recovery time that the nodes shall keep.
	// +optional
	// +kubebuilder:default={}
	Target RecoveryTarget `json:"target,omitempty,omitzero"`

	// cacheWarmup says what is kept on the node beside what its own pods need.
	// +optional
	// +kubebuilder:default={}
	CacheWarmup CacheWarmup `json:"cacheWarmup,omitempty,omitzero"`

	// startupOrdering says in which order pods start after a restart of the node.
	// Unset: all at once, the most important first.
	// +optional
	StartupOrdering StartupOrdering `json:"startupOrdering,omitempty,omitzero"`

	// snapshot says how the node keeps what a restart needs on its own disk.
	// +optional
	// +kubebuilder:default={}
	Snapshot Snapshot `json:"snapshot,omitempty,omitzero"`

	// offline says what is done differently while a node is cut off.
	// +optional
	// +kubebuilder:default={}
	Offline Offline `json:"offline,omitempty,omitzero"`
}

// Mode says whether a policy acts on its nodes.
// +kubebuilder:validation:Enum=Enforce;Observe
type Mode string

const (
	// ModeEnforce carries the policy out.
	ModeEnforce Mode = "Enforce"
	// ModeObserve measures and judges, and changes nothing on the node.
	ModeObserve Mode = "Observe"
)

// NodePool names a pool and may give it a target of its own.
type NodePool struct {
	// name is the value of the pool label of the pool's nodes.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	Name string `json:"name"`

	// target is the pool's own recovery time. Unset: the policy's target.
	// +optional
	Target *RecoveryTarget `json:"target,omitempty"`
}

// RecoveryTarget is the time within which a node shall be back.
type RecoveryTarget struct {
	// recoverySeconds is the longest time from kernel start until the last expected
	// pod is Ready, in seconds.
	// +optional
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	RecoverySeconds int32 `json:"recoverySeconds,omitempty"`
}
