package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NodeRecoveryStatus is what a node's agent found and measured. It is a projection of the
// store on the node's disk: lost or re-created objects lose no record. Every list is bounded.
type NodeRecoveryStatus struct {
	// conditions are RestartReady, SnapshotFresh, ImagesWarm and LocalAPIServing.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec that the agent has taken over.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// agentVersion is the version of the agent that wrote this.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	AgentVersion string `json:"agentVersion,omitempty"`

	// snapshot describes what the node has on disk. Unset: nothing yet.
	// +optional
	Snapshot *SnapshotStatus `json:"snapshot,omitempty"`

	// images says which of the wanted images are on the node. Unset: not looked at yet.
	// +optional
	Images *ImagesStatus `json:"images,omitempty"`

	// findings are the reasons why the node would not come back, or slowly; the worst first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Findings []Finding `json:"findings,omitempty"`

	// findingsTotal counts all findings, also those that the list has no room for.
	// +optional
	FindingsTotal int32 `json:"findingsTotal,omitempty"`

	// survivesOfflineUntil is the first expiry (certificate, token) that would break a
	// restart while cut off, or the node's way back into its cluster after it. Unset: none
	// known.
	// +optional
	SurvivesOfflineUntil *metav1.Time `json:"survivesOfflineUntil,omitempty"`

	// forecast is the recovery time to expect. Unset: no dry run was made yet.
	// +optional
	Forecast *Forecast `json:"forecast,omitempty"`

	// missedResources were asked for in vain while the node was cut off.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	MissedResources []MissedResource `json:"missedResources,omitempty"`

	// recoveries are the measured restarts of the node, newest first. Only the first one
	// carries slowestPods and heldPods.
	// +optional
	// +listType=map
	// +listMapKey=bootID
	// +kubebuilder:validation:MaxItems=5
	Recoveries []Recovery `json:"recoveries,omitempty"`
}

// SnapshotStatus describes the snapshot on the node's disk.
type SnapshotStatus struct {
	// generation is the number of the newest sealed generation.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// inStepTime is when the snapshot was last known to be in step with the API server.
	// It rides along with other changes and is written hourly at most by itself.
	// +optional
	InStepTime *metav1.Time `json:"inStepTime,omitempty"`
	// objects is the number of API objects.
	// +optional
	Objects int32 `json:"objects,omitempty"`
	// bytes is the size on disk.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
}

// ImagesStatus counts images.
type ImagesStatus struct {
	// wanted by the policy.
	// +optional
	Wanted int32 `json:"wanted"`
	// present on the node, with their content.
	// +optional
	Present int32 `json:"present"`
	// pinned against garbage collection.
	// +optional
	Pinned int32 `json:"pinned"`
	// bytes on disk of the wanted ones.
	// +optional
	Bytes int64 `json:"bytes"`
	// problems are wanted images that are not as they should be.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Problems []ImageProblem `json:"problems,omitempty"`
}

// ImageProblem is an image and what is wrong with it.
type ImageProblem struct {
	// image reference, shortened at its start if it is too long.
	// +required
	// +kubebuilder:validation:MaxLength=256
	Image string `json:"image"`
	// reason code.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`
}

// Severity says what a finding does to a restart.
// +kubebuilder:validation:Enum=BlocksNode;BlocksPod;Slows
type Severity string

const (
	// SeverityBlocksNode keeps every pod of the node from coming back.
	SeverityBlocksNode Severity = "BlocksNode"
	// SeverityBlocksPod keeps one pod from coming back.
	SeverityBlocksPod Severity = "BlocksPod"
	// SeveritySlows makes the recovery slower.
	SeveritySlows Severity = "Slows"
)

// Finding is a reason why the node would not come back as it should.
type Finding struct {
	// reason code.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`
	// severity of the finding.
	// +required
	Severity Severity `json:"severity"`
	// pod concerned, namespace/name. Unset: the node as a whole.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	Pod string `json:"pod,omitempty"`
	// object concerned, kind/name. Never a secret's name or value.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Object string `json:"object,omitempty"`
	// message says what is wrong and what to do.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}

// Forecast is the recovery time to expect of the next restart that is cut off, by the node's
// own restarts and by what it has to start now.
type Forecast struct {
	// totalMilliseconds from kernel start until the last expected pod is Ready. Unset: no
	// restart of this node was measured to its end yet, so nothing can be said.
	// +optional
	TotalMilliseconds int64 `json:"totalMilliseconds,omitempty"`
	// withinTarget says whether that keeps the target. Unknown: there is no forecast.
	// +optional
	WithinTarget TruthValue `json:"withinTarget,omitempty"`
	// basedOn is the number of measured restarts behind the forecast: those with the same
	// stages, pods and probes if there are some, else all. 0: there is no history.
	// +optional
	BasedOn int32 `json:"basedOn"`
	// slowestStage is the stage of the start-up order that takes longest of the forecast.
	// Unset: there is one alone.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	SlowestStage string `json:"slowestStage,omitempty"`
}

// MissedResource is a resource that a client on the node asked for in vain.
type MissedResource struct {
	// group is the API group; empty for the core group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`
	// resource is the plural, lower-case name of the resource.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Resource string `json:"resource"`
	// client that asked, by its user agent.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Client string `json:"client,omitempty"`
	// count of requests.
	// +optional
	Count int64 `json:"count,omitempty"`
}
