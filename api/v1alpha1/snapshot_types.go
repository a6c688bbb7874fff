package v1alpha1

// Snapshot says how a node keeps what a restart needs.
type Snapshot struct {
	// maxStalenessSeconds is how long the snapshot may lag behind the API server, in
	// seconds, before SnapshotFresh turns False.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=86400
	MaxStalenessSeconds int32 `json:"maxStalenessSeconds,omitempty"`

	// retainGenerations is how many sealed generations are kept beside the current one.
	// +optional
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5
	RetainGenerations int32 `json:"retainGenerations,omitempty"`

	// nodeFiles are files that a restart loses and that pods need before the daemon that
	// writes them runs, such as /run/flannel/subnet.env. They are kept while the node runs
	// and put back at boot, never over a newer file. Absolute paths below /run,
	// /etc/cni/net.d or /var/lib/cni; no "..", no hidden files. Unset: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=255
	// +kubebuilder:validation:items:Pattern=`^/(run|etc/cni/net\.d|var/lib/cni)(/[A-Za-z0-9_][A-Za-z0-9_.-]*)+$`
	// +kubebuilder:validation:items:XValidation:rule="!['/run/rekindle/', '/run/systemd/', '/run/containerd/', '/run/secrets/'].exists(p, self.startsWith(p))",message="files of rekindle, systemd, containerd and secrets are not kept"
	NodeFiles []string `json:"nodeFiles,omitempty"`

	// serviceAccountTokens is Replay: tokens are kept (encrypted) and given to the same
	// pods again after a restart that is cut off; or Omit: none is kept, and pods with a
	// token volume do not start while the node is cut off.
	// +optional
	// +kubebuilder:default=Replay
	ServiceAccountTokens TokenPolicy `json:"serviceAccountTokens,omitempty"`
}

// TokenPolicy says whether service account tokens are kept.
// +kubebuilder:validation:Enum=Replay;Omit
type TokenPolicy string

const (
	// TokensReplay keeps tokens and hands them out again.
	TokensReplay TokenPolicy = "Replay"
	// TokensOmit keeps no tokens.
	TokensOmit TokenPolicy = "Omit"
)

// Offline says what is done differently while a node is cut off.
type Offline struct {
	// imagePullPolicy is UseLocal: a pod whose image is on the node starts without asking
	// the registry; or AsWritten.
	// +optional
	// +kubebuilder:default=UseLocal
	ImagePullPolicy OfflineImagePullPolicy `json:"imagePullPolicy,omitempty"`

	// readinessProbes is Fast: after a boot that was cut off readiness probes run every
	// second, with the same tolerance in seconds, until kubelet restarts; or AsWritten.
	// +optional
	// +kubebuilder:default=Fast
	ReadinessProbes OfflineReadinessProbes `json:"readinessProbes,omitempty"`

	// attachedVolumes is Hold: a pod with an attachable volume that is not ReadWriteMany
	// waits until the node has heard from the API server in this boot, so that no volume
	// is mounted twice; or Start.
	// +optional
	// +kubebuilder:default=Hold
	AttachedVolumes OfflineAttachedVolumes `json:"attachedVolumes,omitempty"`

	// freshnessWaitMilliseconds is how long a boot waits for the API server once the link
	// is up before it goes on with what is on disk, in milliseconds.
	// +optional
	// +kubebuilder:default=1000
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	FreshnessWaitMilliseconds *int32 `json:"freshnessWaitMilliseconds,omitempty"`
}

// OfflineImagePullPolicy says which image pull policy applies while cut off.
// +kubebuilder:validation:Enum=UseLocal;AsWritten
type OfflineImagePullPolicy string

// OfflineReadinessProbes says which readiness probe periods apply after a boot that was cut off.
// +kubebuilder:validation:Enum=Fast;AsWritten
type OfflineReadinessProbes string

// OfflineAttachedVolumes says what becomes of pods with attachable volumes while cut off.
// +kubebuilder:validation:Enum=Hold;Start
type OfflineAttachedVolumes string

const (
	// ImagePullUseLocal starts from local images.
	ImagePullUseLocal OfflineImagePullPolicy = "UseLocal"
	// ImagePullAsWritten keeps the pod's own policy.
	ImagePullAsWritten OfflineImagePullPolicy = "AsWritten"

	// ReadinessProbesFast probes every second.
	ReadinessProbesFast OfflineReadinessProbes = "Fast"
	// ReadinessProbesAsWritten keeps the pod's own periods.
	ReadinessProbesAsWritten OfflineReadinessProbes = "AsWritten"

	// AttachedVolumesHold waits for the API server.
	AttachedVolumesHold OfflineAttachedVolumes = "Hold"
	// AttachedVolumesStart does not wait.
	AttachedVolumesStart OfflineAttachedVolumes = "Start"
)
