package v1alpha1

// Reasons of RestartReady on a NodeRecovery, beside NotEvaluated and those of findings.
const (
	// ReasonWouldComeBack: nothing was found that keeps the node or one of its pods from
	// coming back.
	ReasonWouldComeBack = "WouldComeBack"
	// ReasonNotVisible: something could not be looked at; the message says what.
	ReasonNotVisible = "NotVisible"
)

// Reasons of findings about one pod, beside AttachedVolumeNotSynced. docs/readiness.md has
// the cure of each.
const (
	// ReasonObjectMissing: the node does not keep an object that the pod refers to.
	ReasonObjectMissing = "ObjectMissing"
	// ReasonObjectUnreadable: it keeps one that does not decode.
	ReasonObjectUnreadable = "ObjectUnreadable"
	// ReasonKeyMissing: a secret or configmap lacks a key that the pod asks for.
	ReasonKeyMissing = "KeyMissing"
	// ReasonTokenMissing: no token is kept for one of the pod's token volumes.
	ReasonTokenMissing = "TokenMissing"
	// ReasonImageMissing: an image of the pod is not on the node.
	ReasonImageMissing = "ImageMissing"
	// ReasonImageDamaged: an image is listed, and its content is not on the disk.
	ReasonImageDamaged = "ImageDamaged"
	// ReasonImageChanged: the image's name leads to another image than the pod runs.
	ReasonImageChanged = "ImageChanged"
	// ReasonImageNotPinned: images may be removed when the disk fills.
	ReasonImageNotPinned = "ImageNotPinned"
	// ReasonImagePullNeeded: the pod asks the registry also for an image that is there.
	ReasonImagePullNeeded = "ImagePullNeeded"
	// ReasonImageCredentials: kubelet lets the pod use the image only after it has asked
	// the registry, since the credentials that it remembers are not the pod's.
	ReasonImageCredentials = "ImageCredentials"
	// ReasonDevicePlugin: the pod uses a resource of a device plugin; kubelet fails it for
	// good when the plugin is not there yet.
	ReasonDevicePlugin = "DevicePlugin"
	// ReasonPodCertificate: the pod has a podCertificate volume, which needs a signer.
	ReasonPodCertificate = "PodCertificate"
	// ReasonHostPathVolatile: the pod needs a path of the node that a restart empties.
	ReasonHostPathVolatile = "HostPathVolatile"
	// ReasonHostPathLate: the pod uses a path on a disk that may not be mounted yet.
	ReasonHostPathLate = "HostPathLate"
	// ReasonNeverRestarted: the pod's restartPolicy is Never and it has not ended.
	ReasonNeverRestarted = "NeverRestarted"
	// ReasonDriverLate: the pod waits until its CSI or DRA driver has registered.
	ReasonDriverLate = "DriverLate"
	// ReasonStageOrder: the pod's stage comes before the one of a pod that it needs.
	ReasonStageOrder = "StageOrder"
	// ReasonStageEmpty: a stage of the policy selects no pod of the node.
	ReasonStageEmpty = "StageEmpty"
)

// Reasons of findings about the node, beside PodListNotServed. docs/readiness.md has the cure of each.
const (
	// ReasonNotMirrored: the node does not keep a collection that kubelet waits for.
	ReasonNotMirrored = "NotMirrored"
	// ReasonSnapshotStale: the snapshot was last in step too long ago.
	ReasonSnapshotStale = "SnapshotStale"
	// ReasonNoSealedGeneration: there is no sealed copy to fall back to.
	ReasonNoSealedGeneration = "NoSealedGeneration"
	// ReasonInstallIncomplete: a file of the agent's installation is missing.
	ReasonInstallIncomplete = "InstallIncomplete"
	// ReasonUnitDisabled: systemd would not start a unit at boot.
	ReasonUnitDisabled = "UnitDisabled"
	// ReasonSlowRestart: systemd waits long before it starts kubelet again.
	ReasonSlowRestart = "SlowRestart"
	// ReasonNetworkWait: kubelet waits for network-online.target.
	ReasonNetworkWait = "NetworkWait"
	// ReasonIdentityUnusable: kubelet's kubeconfig or client certificate cannot be used.
	ReasonIdentityUnusable = "IdentityUnusable"
	// ReasonCertificateEnding: kubelet's client certificate, or the CA by which it knows the
	// API server, is near its end or past it.
	ReasonCertificateEnding = "CertificateEnding"
	// ReasonKubeletFileEmpty: a file that kubelet does not start without is empty or broken.
	ReasonKubeletFileEmpty = "KubeletFileEmpty"
	// ReasonKubeletConfig: kubelet's configuration cannot be read.
	ReasonKubeletConfig = "KubeletConfig"
	// ReasonKubeletCheckpoint: kubelet would exit because of one of its checkpoint files.
	ReasonKubeletCheckpoint = "KubeletCheckpoint"
	// ReasonGracefulShutdown: an orderly shutdown fails pods for good.
	ReasonGracefulShutdown = "GracefulShutdown"
	// ReasonRuntimeNotReady: the container runtime says that it is not ready.
	ReasonRuntimeNotReady = "RuntimeNotReady"
	// ReasonCNINotConfigured: there is no CNI configuration that outlives a restart.
	ReasonCNINotConfigured = "CNINotConfigured"
	// ReasonCNIFileVolatile: the CNI plugin needs a file that a restart loses.
	ReasonCNIFileVolatile = "CNIFileVolatile"
	// ReasonCNINeedsAPIServer: the CNI plugin asks the API server for each pod.
	ReasonCNINeedsAPIServer = "CNINeedsAPIServer"
	// ReasonCNICredentialEnded: the CNI plugin's credential for the local API has run out.
	ReasonCNICredentialEnded = "CNICredentialEnded"
	// ReasonDiskFull: a file system is below kubelet's eviction threshold or has no room.
	ReasonDiskFull = "DiskFull"
	// ReasonDiskReadOnly: a file system that must be written is read-only.
	ReasonDiskReadOnly = "DiskReadOnly"
	// ReasonNoClock: the machine has no clock that runs while it is off.
	ReasonNoClock = "NoClock"
	// ReasonResourceMissed: clients on the node asked for a resource while it was cut off,
	// and did not get it.
	ReasonResourceMissed = "ResourceMissed"
)
