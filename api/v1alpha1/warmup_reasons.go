package v1alpha1

// Reasons of ImagesWarm, beside NotEvaluated.
const (
	// ReasonImagesPresent: every wanted image is on the node with its content.
	ReasonImagesPresent = "ImagesPresent"
	// ReasonImagesMissing: some are not; status.images.problems says which and why.
	ReasonImagesMissing = "ImagesMissing"
	// ReasonNoPolicy: no policy applies, so no image is wanted.
	ReasonNoPolicy = "NoPolicy"
	// ReasonRuntimeSilent: the container runtime does not answer. Look at its unit and at
	// criEndpoint in the agent's configuration.
	ReasonRuntimeSilent = "RuntimeSilent"
)

// Reasons of ImageProblem.
const (
	// ImageNotPresent: the image is not on the node and was not asked for yet.
	ImageNotPresent = "NotPresent"
	// ImagePullFailed: the registry refused it or does not have it. Check the reference
	// and the pull secrets of the pods that use it; the agent's log has the answer.
	ImagePullFailed = "PullFailed"
	// ImageRegistryUnreachable: the registry does not answer. It is asked again, less and
	// less often, at least every 5 minutes.
	ImageRegistryUnreachable = "RegistryUnreachable"
	// ImageLeftToKubelet: the image needs a pull secret and kubelet has not pulled it for
	// its pod yet. Only kubelet can note who may use it.
	ImageLeftToKubelet = "LeftToKubelet"
	// ImageOverBudget: the more important images leave no room for it in images.maxSize.
	ImageOverBudget = "OverBudget"
	// ImageDamaged: files of a layer were lost or changed, as by a power cut, and could
	// not be mended. Delete the pods that use it and the image, it is pulled anew.
	ImageDamaged = "Damaged"
	// ImageNotPinned: the runtime does not let it be pinned, so kubelet's garbage
	// collection may take it.
	ImageNotPinned = "NotPinned"
)

// ReasonNodeFileNotKept is the reason of a finding: a file of snapshot.nodeFiles is not kept
// or was not put back. The message says why.
const ReasonNodeFileNotKept = "NodeFileNotKept"
