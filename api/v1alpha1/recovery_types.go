package v1alpha1

// Recovery is one measured restart of a node. All times are of CLOCK_BOOTTIME: a wrong or
// stepped wall clock changes none of them, except downMilliseconds.
type Recovery struct {
	// bootID is the kernel's boot id of the boot that this record is about.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=36
	BootID string `json:"bootID"`

	// previousEnd says how the boot before ended: Clean (an orderly shutdown), PowerLoss
	// or Unknown.
	// +optional
	PreviousEnd PreviousEnd `json:"previousEnd,omitempty"`

	// connectivityAtStart says whether the API server answered when the node started.
	// +optional
	ConnectivityAtStart Connectivity `json:"connectivityAtStart,omitempty"`

	// connectivityAtEnd says whether the API server answered when the record was closed.
	// +optional
	ConnectivityAtEnd Connectivity `json:"connectivityAtEnd,omitempty"`

	// downMilliseconds is the time from the last sign of life before the restart until
	// kernel start, by the wall clock, exact to a minute. Unset: the clock does not tell.
	// +optional
	DownMilliseconds *int64 `json:"downMilliseconds,omitempty"`

	// totalMilliseconds is the time from kernel start until the last expected pod was
	// Ready. Unset: the recovery did not complete.
	// +optional
	TotalMilliseconds *int64 `json:"totalMilliseconds,omitempty"`

	// phases split the total, in milliseconds; a phase that nobody observed is unset and
	// its time is part of the next one.
	// +optional
	Phases RecoveryPhases `json:"phases,omitempty,omitzero"`

	// expectedPods is the number of pods that were expected back: those on the node that
	// are neither finished nor being deleted and that were Ready when last seen.
	// +optional
	ExpectedPods int32 `json:"expectedPods"`

	// readyPods is how many of them became Ready.
	// +optional
	ReadyPods int32 `json:"readyPods"`

	// notReadyBefore is the number of pods that were not Ready before the restart either.
	// They are not waited for.
	// +optional
	NotReadyBefore int32 `json:"notReadyBefore,omitempty"`

	// result is Complete, or Incomplete: not every expected pod became Ready before the
	// record was closed, at the latest after the longer of five times the target and 10
	// minutes, or at the next restart.
	// +optional
	Result RecoveryResult `json:"result,omitempty"`

	// incompleteReason says why the result is Incomplete.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	IncompleteReason string `json:"incompleteReason,omitempty"`

	// targetSeconds is the target that applied, in seconds.
	// +optional
	TargetSeconds int32 `json:"targetSeconds,omitempty"`

	// targetMet says whether the recovery kept it.
	// +optional
	TargetMet TruthValue `json:"targetMet,omitempty"`

	// slowestPods are the expected pods that took longest, those that are not Ready first.
	// +optional
	// +listType=map
	// +listMapKey=pod
	// +kubebuilder:validation:MaxItems=5
	SlowestPods []PodRecovery `json:"slowestPods,omitempty"`

	// heldPods are pods that were held back on purpose and are not waited for.
	// +optional
	// +listType=map
	// +listMapKey=pod
	// +kubebuilder:validation:MaxItems=5
	HeldPods []HeldPod `json:"heldPods,omitempty"`

	// stages are the groups of the start-up order that were opened, in their order: Critical
	// (static pods and critical ones that no stage selects), the policy's stages, and Rest.
	// Without stages there is Rest alone.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Stages []StageRecovery `json:"stages,omitempty"`
}

// RecoveryPhases are the parts of a recovery, in their order, in milliseconds. Each
// begins where the one before it (of those that are set) ended.
type RecoveryPhases struct {
	// kernel is the time from kernel start until the first process (init) starts, in
	// milliseconds.
	// +optional
	Kernel *int64 `json:"kernel,omitempty"`
	// userspace is the time until the kubelet process starts, in milliseconds from the end
	// of the phase before.
	// +optional
	Userspace *int64 `json:"userspace,omitempty"`
	// kubeletStart is the time until kubelet serves its health endpoint, or asks for its node,
	// in milliseconds from the end of the phase before.
	// +optional
	KubeletStart *int64 `json:"kubeletStart,omitempty"`
	// nodeList is the time until kubelet is given its Node, in milliseconds from the end of
	// the phase before.
	// +optional
	NodeList *int64 `json:"nodeList,omitempty"`
	// podList is the time until kubelet is given its pods, in milliseconds from the end of
	// the phase before.
	// +optional
	PodList *int64 `json:"podList,omitempty"`
	// firstSandbox is the time until the first pod sandbox of this boot is ready, in
	// milliseconds from the end of the phase before.
	// +optional
	FirstSandbox *int64 `json:"firstSandbox,omitempty"`
	// firstReady is the time until the first expected pod is Ready, in milliseconds from the
	// end of the phase before.
	// +optional
	FirstReady *int64 `json:"firstReady,omitempty"`
	// lastReady is the time until the last expected pod is Ready, in milliseconds from the
	// end of the phase before.
	// +optional
	LastReady *int64 `json:"lastReady,omitempty"`
}

// PodRecovery is one pod's part of a recovery.
type PodRecovery struct {
	// pod is namespace/name.
	// +required
	// +kubebuilder:validation:MaxLength=317
	Pod string `json:"pod"`
	// milliseconds from kernel start until Ready. Unset: not Ready.
	// +optional
	Milliseconds *int64 `json:"milliseconds,omitempty"`
	// reason why the pod is not Ready.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
	// steps split the time that its containers took to start by who took it. Only the
	// slowest pod has them, and none whose start the agent did not see.
	// +optional
	Steps *PodSteps `json:"steps,omitempty"`
}

// PodSteps are the parts of a pod's start, in milliseconds, from kubelet's first request for
// its sandbox until its last container was started, all attempts and all containers
// together. They do not overlap.
type PodSteps struct {
	// held is how long the agent held the pod back, in milliseconds: for the start-up order,
	// for the pod network, or for a volume.
	// +optional
	Held int64 `json:"held,omitempty"`
	// sandbox is how long the container runtime took for the sandbox, the pod network
	// included, in milliseconds.
	// +optional
	Sandbox int64 `json:"sandbox,omitempty"`
	// pull is how long the container runtime took to pull images, in milliseconds. Unset:
	// none was pulled.
	// +optional
	Pull int64 `json:"pull,omitempty"`
	// create is how long the container runtime took to create containers, in milliseconds.
	// +optional
	Create int64 `json:"create,omitempty"`
	// start is how long the container runtime took to start containers, in milliseconds.
	// +optional
	Start int64 `json:"start,omitempty"`
	// kubelet is the rest, in milliseconds: kubelet's own work and its pauses between
	// attempts, and init containers while they run. Unset: no container was started.
	// +optional
	Kubelet int64 `json:"kubelet,omitempty"`
}

// HeldPod is a pod that was held back, and why.
type HeldPod struct {
	// pod is namespace/name.
	// +required
	// +kubebuilder:validation:MaxLength=317
	Pod string `json:"pod"`
	// reason code.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`
}

// StageRecovery is one stage's part of a recovery.
type StageRecovery struct {
	// name of the stage.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// openedMilliseconds is when its pods might start, from kernel start.
	// +optional
	OpenedMilliseconds int64 `json:"openedMilliseconds"`
	// result is how the stage stood when the next one was opened. Unset: it is the last one.
	// +optional
	Result StageResult `json:"result,omitempty"`
	// waitedFor is a pod that was not where the stage waited for it to be, the most
	// important one, as namespace/name. Unset: all were.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	WaitedFor string `json:"waitedFor,omitempty"`
	// pods is the number of pods that the stage had to start. Unset: none, or not known.
	// +optional
	Pods int32 `json:"pods,omitempty"`
	// probeWaitMilliseconds is how long their probes' initial delays and periods keep them
	// from being called Ready. The forecast of other plans is made with it.
	// +optional
	ProbeWaitMilliseconds int64 `json:"probeWaitMilliseconds,omitempty"`
}

// StageResult says why a stage was not waited for any longer.
// +kubebuilder:validation:Enum=Ready;TimedOut;Early
type StageResult string

const (
	// StageReady had every pod where it was waited for, or they will never be.
	StageReady StageResult = "Ready"
	// StageTimedOut had not when its time was up.
	StageTimedOut StageResult = "TimedOut"
	// StageEarly made no progress, and a later stage had a pod that it might need.
	StageEarly StageResult = "Early"
)

// PreviousEnd says how a boot ended.
// +kubebuilder:validation:Enum=Clean;PowerLoss;Unknown
type PreviousEnd string

const (
	// PreviousEndClean is an orderly shutdown.
	PreviousEndClean PreviousEnd = "Clean"
	// PreviousEndPowerLoss is a loss of power, a crash or a reset.
	PreviousEndPowerLoss PreviousEnd = "PowerLoss"
	// PreviousEndUnknown is a first boot, or one whose traces are gone.
	PreviousEndUnknown PreviousEnd = "Unknown"
)

// Connectivity says whether the API server could be reached.
// +kubebuilder:validation:Enum=Online;Offline
type Connectivity string

const (
	// ConnectivityOnline answered.
	ConnectivityOnline Connectivity = "Online"
	// ConnectivityOffline did not answer.
	ConnectivityOffline Connectivity = "Offline"
)

// RecoveryResult says how a recovery ended.
// +kubebuilder:validation:Enum=Complete;Incomplete
type RecoveryResult string

const (
	// RecoveryComplete had every expected pod Ready.
	RecoveryComplete RecoveryResult = "Complete"
	// RecoveryIncomplete had not.
	RecoveryIncomplete RecoveryResult = "Incomplete"
)
