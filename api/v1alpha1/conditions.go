package v1alpha1

// Condition types of an EdgeRecoveryPolicy.
const (
	// ConditionAccepted is True when the policy can be carried out as written.
	ConditionAccepted = "Accepted"
	// ConditionApplied is True when every node that follows the policy and is in reach
	// has taken over its present generation.
	ConditionApplied = "Applied"
	// ConditionRestartReady is True when every node that is in reach would come back by
	// itself if it restarted now, cut off. On a NodeRecovery: this node would.
	ConditionRestartReady = "RestartReady"
	// ConditionTargetMet is True when every pool with measured recoveries meets its target.
	ConditionTargetMet = "TargetMet"
)

// Condition types of a NodeRecovery, beside RestartReady.
const (
	// ConditionSnapshotFresh is True when the snapshot is as new as the policy asks.
	ConditionSnapshotFresh = "SnapshotFresh"
	// ConditionImagesWarm is True when every wanted image is on the node.
	ConditionImagesWarm = "ImagesWarm"
	// ConditionLocalAPIServing is True when kubelet is served by the agent.
	ConditionLocalAPIServing = "LocalAPIServing"
)

// Reasons of Accepted.
const (
	// ReasonAccepted: the policy is carried out on every node that it selects.
	ReasonAccepted = "Accepted"
	// ReasonNoMatchingNodes: the policy selects no node. Check the selector or the pool
	// names and nodePoolLabelKey against `kubectl get nodes --show-labels`.
	ReasonNoMatchingNodes = "NoMatchingNodes"
	// ReasonInvalidSelector: a label selector cannot be parsed; the message names the field.
	ReasonInvalidSelector = "InvalidSelector"
	// ReasonOverridden: every selected node follows a better policy.
	ReasonOverridden = "Overridden"
	// ReasonPartlyOverridden: some selected nodes follow a better policy.
	ReasonPartlyOverridden = "PartlyOverridden"
)

// Reasons of Applied.
const (
	// ReasonAllNodesApplied: every node in reach has taken the policy over.
	ReasonAllNodesApplied = "AllNodesApplied"
	// ReasonWaitingForAgents: some nodes in reach have not.
	ReasonWaitingForAgents = "WaitingForAgents"
	// ReasonNoNodes: there is no node to speak about.
	ReasonNoNodes = "NoNodes"
)

// Reasons of RestartReady.
const (
	// ReasonNotEvaluated: no agent has given a verdict yet.
	ReasonNotEvaluated = "NotEvaluated"
	// ReasonAllNodesReady: every node in reach would come back.
	ReasonAllNodesReady = "AllNodesReady"
	// ReasonNodesNotReady: some nodes would not; topReasons says why.
	ReasonNodesNotReady = "NodesNotReady"
)

// Reasons of TargetMet.
const (
	// ReasonWithinTarget: every pool with samples is within its target.
	ReasonWithinTarget = "WithinTarget"
	// ReasonTargetMissed: at least one pool misses its target.
	ReasonTargetMissed = "TargetMissed"
	// ReasonNoSamples: no restart has been measured.
	ReasonNoSamples = "NoSamples"
)

// Reason of a NodeRecovery's conditions for what the agent was told not to do.
const (
	// ReasonObserveOnly: the policy's mode is Observe.
	ReasonObserveOnly = "ObserveOnly"
)

// Reasons of SnapshotFresh; the last three are reasons of findings too.
const (
	// ReasonInStep: everything was in step with the API server within maxStalenessSeconds.
	ReasonInStep = "InStep"
	// ReasonNotSynced: not everything was read yet.
	ReasonNotSynced = "NotSynced"
	// ReasonOutOfStep: a collection was last in step longer ago than that; the message
	// names it.
	ReasonOutOfStep = "OutOfStep"
	// ReasonReadRefused: the node may not read something that it is to keep. The findings
	// name the resource and the rule that is missing.
	ReasonReadRefused = "ReadRefused"
	// ReasonPodListHeld: the API server's list lacks pods of the node and is not believed.
	ReasonPodListHeld = "PodListHeld"
	// ReasonOtherCluster: the API server that answers is not of the node's cluster.
	ReasonOtherCluster = "OtherCluster"
)

// Reasons of LocalAPIServing.
const (
	// ReasonKubeletServed: kubelet talks to the agent.
	ReasonKubeletServed = "KubeletServed"
	// ReasonNotInstalled: kubelet talks to the API server itself. Run rekindle-agent
	// install on the node.
	ReasonNotInstalled = "NotInstalled"
	// ReasonUnhooked: the agent is installed, and kubelet runs without it. The message
	// says why.
	ReasonUnhooked = "Unhooked"
)

// Reasons of findings about the warm list.
const (
	// ReasonWarmListTooLarge: an entry of cacheWarmup.resources has more objects than the agent
	// keeps; nothing of it is kept.
	ReasonWarmListTooLarge = "WarmListTooLarge"
)

// Reasons of findings about service account tokens.
const (
	// ReasonTokenExpired: tokens have run out, or had when they were replayed.
	ReasonTokenExpired = "TokenExpired"
	// ReasonTokensOmitted: the policy keeps no tokens, so the pod does not start while the
	// node is cut off.
	ReasonTokensOmitted = "TokensOmitted"
)

// Reasons of findings about what is held back after a restart; the first is one of heldPods
// too. They stay for ten minutes when it is over, since nobody sees them while the node is
// cut off.
const (
	// ReasonAttachedVolumeNotSynced (BlocksPod): the pod has a volume that is attached to one
	// node at a time, and waits until the API server is heard in this boot: it may be attached
	// elsewhere by now. The link back is the cure, or offline.attachedVolumes: Start where no
	// other node can use the volume.
	ReasonAttachedVolumeNotSynced = "AttachedVolumeNotSynced"
	// ReasonPodListNotServed (BlocksNode): the stored list of pods may lack some, so kubelet
	// is given none until the API server answers; static pods run. The message names what does
	// not fit, the agent's log what was wrong with the store.
	ReasonPodListNotServed = "PodListNotServed"
)

// Reasons of findings about the node's store.
const (
	// ReasonStoreNotWritten: the store takes no changes, since the disk is full, read-only
	// or broken. The agent goes on in memory; a restart would find an older state.
	ReasonStoreNotWritten = "StoreNotWritten"
	// ReasonStoreReset: in this boot the store was found new, or replaced by an older one,
	// and the records of earlier restarts were taken from the status. The agent's log says
	// what was wrong with the store.
	ReasonStoreReset = "StoreReset"
)

// Values of Recovery.incompleteReason.
const (
	// IncompletePodsNotReady: the time was up before every expected pod was Ready;
	// slowestPods names them.
	IncompletePodsNotReady = "PodsNotReady"
	// IncompleteRestarted: the node restarted before the recovery was over.
	IncompleteRestarted = "RestartedBeforeEnd"
	// IncompleteNoPodList: kubelet was not given its pods before the time was up, since
	// the API server did not answer.
	IncompleteNoPodList = "NoPodList"
)

// Reasons of events about a NodeRecovery, which the manager makes of what its agent reports.
const (
	// EventRestartReady: the node would come back by itself if it restarted now, cut off.
	EventRestartReady = "RestartReady"
	// EventNotRestartReady: it, or a pod of it, would not; the note begins with the reason.
	EventNotRestartReady = "NotRestartReady"
	// EventRecovered: the node has restarted, and every expected pod is Ready.
	EventRecovered = "Recovered"
	// EventRecoveryIncomplete: the node has restarted, and not every expected pod is Ready.
	EventRecoveryIncomplete = "RecoveryIncomplete"
	// EventStageTimedOut: a stage of the start-up order did not get its pods in time, and the
	// next one was opened.
	EventStageTimedOut = "StageTimedOut"
)

// Label keys.
const (
	// LabelPolicy is set on a NodeRecovery to the name of its policy when that fits a
	// label value.
	LabelPolicy = "rekindle.edge/policy"
	// LabelAggregateToNode with the value "true" on a ClusterRole adds its rules to what
	// nodes may mirror.
	LabelAggregateToNode = "rekindle.edge/aggregate-to-node"
	// DefaultNodePoolLabelKey is OpenYurt's label of a node's pool.
	DefaultNodePoolLabelKey = "apps.openyurt.io/nodepool"
)
