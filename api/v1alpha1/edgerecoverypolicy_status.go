package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// EdgeRecoveryPolicyStatus is the dashboard of a policy: aggregated from the
// NodeRecovery objects of the nodes that follow it, in bounded lists.
type EdgeRecoveryPolicyStatus struct {
	// conditions are Accepted, Applied, RestartReady and TargetMet.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the policy that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// nodes counts the nodes that the policy selects. Zeros are written too: a policy that
	// selects nothing shows 0.
	// +optional
	Nodes NodeCounts `json:"nodes"`

	// p95Milliseconds is the 95th percentile of the recoveries of the slowest pool, in
	// milliseconds from kernel start; offline and online restarts are taken apart and the
	// slower of the two counts. Unset: nothing measured, or the percentile falls on a
	// recovery that did not complete.
	// +optional
	P95Milliseconds *int64 `json:"p95Milliseconds,omitempty"`

	// pools has one entry for each pool. Nodes that a nodeSelector selects and that have
	// no pool label are in the pool with the empty name. With more pools than the list
	// holds, those that miss their target come first, then by name.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Pools []PoolStatus `json:"pools,omitempty"`

	// slowestNodes are the nodes whose newest recovery took longest, slowest first; those
	// that did not complete come before all others.
	// +optional
	// +listType=map
	// +listMapKey=node
	// +kubebuilder:validation:MaxItems=10
	SlowestNodes []SlowNode `json:"slowestNodes,omitempty"`

	// topReasons are the findings that most nodes have, most frequent first; those that keep a
	// node or a pod from coming back before those that slow it.
	// +optional
	// +listType=map
	// +listMapKey=reason
	// +kubebuilder:validation:MaxItems=10
	TopReasons []ReasonCount `json:"topReasons,omitempty"`

	// missedResources were asked for in vain on cut-off nodes: candidates for
	// spec.cacheWarmup.resources, most frequent first.
	// +optional
	// +listType=map
	// +listMapKey=group
	// +listMapKey=resource
	// +kubebuilder:validation:MaxItems=10
	MissedResources []MissedResourceCount `json:"missedResources,omitempty"`
}

// NodeCounts counts nodes of a policy.
type NodeCounts struct {
	// matched are the nodes that the policy selects, also those that follow a better policy.
	// +optional
	Matched int32 `json:"matched"`
	// applied are the nodes whose agent has taken over this generation of the policy.
	// +optional
	Applied int32 `json:"applied"`
	// restartReady are the nodes that would come back by themselves if they restarted
	// now, cut off.
	// +optional
	RestartReady int32 `json:"restartReady"`
	// notRestartReady are the nodes that would not.
	// +optional
	NotRestartReady int32 `json:"notRestartReady"`
	// unknown are the nodes without a verdict.
	// +optional
	Unknown int32 `json:"unknown"`
	// offline are the nodes that are out of reach (their Node's Ready condition is
	// Unknown). They are a class of their own: never failed, and nothing waits for them.
	// +optional
	Offline int32 `json:"offline"`
}

// PoolStatus is what the nodes of one pool measured.
type PoolStatus struct {
	// name of the pool; empty for nodes without a pool label.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// targetSeconds is the target that applies to the pool, in seconds.
	// +optional
	TargetSeconds int32 `json:"targetSeconds,omitempty"`
	// nodes that follow the policy in this pool.
	// +optional
	Nodes int32 `json:"nodes"`
	// restartReady nodes of the pool.
	// +optional
	RestartReady int32 `json:"restartReady"`
	// offline are the recoveries that began without the API server. Unset: none.
	// +optional
	Offline *RecoveryStats `json:"offline,omitempty"`
	// online are the recoveries that began with the API server in reach. Unset: none.
	// +optional
	Online *RecoveryStats `json:"online,omitempty"`
	// targetMet is True when the 95th percentile of each class that has samples is within
	// the target; Unknown without samples.
	// +optional
	TargetMet TruthValue `json:"targetMet,omitempty"`
}

// RecoveryStats are percentiles (nearest rank) of recoveries, in milliseconds. A recovery
// that did not complete counts as slower than every one that did: a percentile that falls
// on one is unset.
type RecoveryStats struct {
	// samples is the number of recoveries.
	// +optional
	Samples int32 `json:"samples"`
	// p50Milliseconds is the median.
	// +optional
	P50Milliseconds *int64 `json:"p50Milliseconds,omitempty"`
	// p90Milliseconds is the 90th percentile.
	// +optional
	P90Milliseconds *int64 `json:"p90Milliseconds,omitempty"`
	// p95Milliseconds is the 95th percentile.
	// +optional
	P95Milliseconds *int64 `json:"p95Milliseconds,omitempty"`
	// maxMilliseconds is the slowest.
	// +optional
	MaxMilliseconds *int64 `json:"maxMilliseconds,omitempty"`
}

// SlowNode is a node and what its newest recovery was slowed by.
type SlowNode struct {
	// node is the name of the Node.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node"`
	// totalMilliseconds is the recovery's length. Unset: it did not complete.
	// +optional
	TotalMilliseconds *int64 `json:"totalMilliseconds,omitempty"`
	// slowestPhase is the longest phase, by its field name in NodeRecovery.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	SlowestPhase string `json:"slowestPhase,omitempty"`
	// slowestPhaseMilliseconds is the length of that phase.
	// +optional
	SlowestPhaseMilliseconds *int64 `json:"slowestPhaseMilliseconds,omitempty"`
}

// ReasonCount is a reason and the number of nodes that have it.
type ReasonCount struct {
	// reason is a finding's reason code.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`
	// nodes that have it.
	// +required
	Nodes int32 `json:"nodes"`
	// severity is the worst that it has on a node: what only Slows keeps no node from coming
	// back.
	// +optional
	Severity Severity `json:"severity,omitempty"`
}

// MissedResourceCount is a resource and the number of nodes on which it was missed.
type MissedResourceCount struct {
	// group is the API group; empty for the core group.
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group"`
	// resource is the plural, lower-case name of the resource.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Resource string `json:"resource"`
	// nodes on which it was missed.
	// +required
	Nodes int32 `json:"nodes"`
}

// TruthValue is True, False or Unknown.
// +kubebuilder:validation:Enum=True;False;Unknown
type TruthValue string

const (
	// TruthTrue holds.
	TruthTrue TruthValue = "True"
	// TruthFalse does not hold.
	TruthFalse TruthValue = "False"
	// TruthUnknown cannot be said.
	TruthUnknown TruthValue = "Unknown"
)
