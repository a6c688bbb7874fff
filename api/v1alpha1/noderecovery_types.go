package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NodeRecovery is one node's part of its policy and what the node measured. It has the
// name of its Node and is owned by it. The controller alone writes spec; the agent of
// that node alone writes status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,path=noderecoveries,shortName=nrec,categories=rekindle
// +kubebuilder:printcolumn:name="Pool",type=string,JSONPath=`.spec.pool`,description="Pool of the node"
// +kubebuilder:printcolumn:name="Restart-Ready",type=string,JSONPath=`.status.conditions[?(@.type=="RestartReady")].status`,description="Whether the node would come back by itself if it restarted now, cut off"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="RestartReady")].reason`,description="Why; docs/readiness.md has the cure of each"
// +kubebuilder:printcolumn:name="Snapshot-Fresh",type=string,JSONPath=`.status.conditions[?(@.type=="SnapshotFresh")].status`,description="Whether the node's snapshot is as new as the policy asks"
// +kubebuilder:printcolumn:name="Last-Recovery-MS",type=integer,JSONPath=`.status.recoveries[0].totalMilliseconds`,description="Milliseconds from kernel start until the last expected pod was Ready, newest restart"
// +kubebuilder:printcolumn:name="Target-Met",type=string,JSONPath=`.status.recoveries[0].targetMet`,description="Whether the newest restart kept its target"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Forecast-MS",type=integer,priority=1,JSONPath=`.status.forecast.totalMilliseconds`,description="Milliseconds to expect of the next restart that is cut off"
// +kubebuilder:printcolumn:name="Survives-Until",type=string,priority=1,JSONPath=`.status.survivesOfflineUntil`,description="The first expiry that would break a restart which is cut off, or the way back into the cluster"
// +kubebuilder:printcolumn:name="Policy",type=string,priority=1,JSONPath=`.spec.policyName`
// +kubebuilder:printcolumn:name="Result",type=string,priority=1,JSONPath=`.status.recoveries[0].result`
// +kubebuilder:printcolumn:name="Agent",type=string,priority=1,JSONPath=`.status.agentVersion`
type NodeRecovery struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata; the name is the name of the Node.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the node's part of its policy, rendered by the controller. It is atomic to
	// server-side apply: the controller owns it whole, so a field that somebody adds by
	// hand is taken out again.
	// +required
	// +structType=atomic
	Spec NodeRecoverySpec `json:"spec"`

	// status is written by the node's agent.
	// +optional
	Status NodeRecoveryStatus `json:"status,omitempty,omitzero"`
}

// NodeRecoveryList is a list of NodeRecovery objects.
//
// +kubebuilder:object:root=true
type NodeRecoveryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NodeRecovery `json:"items"`
}

// NodeRecoverySpec is what the node does, complete: nothing in it refers to another object.
type NodeRecoverySpec struct {
	// policyName is the EdgeRecoveryPolicy that this was rendered from.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	PolicyName string `json:"policyName"`

	// policyGeneration is that policy's generation.
	// +required
	// +kubebuilder:validation:Minimum=1
	PolicyGeneration int64 `json:"policyGeneration"`

	// pool is the node's pool; empty without a pool label.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Pool string `json:"pool,omitempty"`

	// mode is Enforce, or Observe: measure and judge, change nothing on the node.
	// +optional
	// +kubebuilder:default=Enforce
	Mode Mode `json:"mode,omitempty"`

	// target is the recovery time of this node: its pool's, or the policy's.
	// +optional
	// +kubebuilder:default={}
	Target RecoveryTarget `json:"target,omitempty,omitzero"`

	// cacheWarmup is the policy's.
	// +optional
	// +kubebuilder:default={}
	CacheWarmup CacheWarmup `json:"cacheWarmup,omitempty,omitzero"`

	// startupOrdering is the policy's.
	// +optional
	StartupOrdering StartupOrdering `json:"startupOrdering,omitempty,omitzero"`

	// snapshot is the policy's.
	// +optional
	// +kubebuilder:default={}
	Snapshot Snapshot `json:"snapshot,omitempty,omitzero"`

	// offline is the policy's.
	// +optional
	// +kubebuilder:default={}
	Offline Offline `json:"offline,omitempty,omitzero"`
}
