package readiness

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/api/v1alpha1"
)

func (f *findings) objects(pod Pod, facts Facts) {
	told := map[string]bool{}
	for _, object := range pod.Objects {
		id := object.Resource
		// Which secrets a node has is nobody's business.
		if object.Name != "" {
			id += "/" + object.Name
		}
		key := id + object.Place
		if object.Optional && object.State == ObjectAbsent || told[key] {
			continue
		}
		told[key] = true
		switch {
		case object.State == ObjectAbsent || object.State == ObjectUnknown:
			f.add(v1alpha1.ReasonObjectMissing, v1alpha1.SeverityBlocksPod, name(pod), id,
				"%s of the pod needs an object of %s that this node does not keep. Does it exist? If so, see SnapshotFresh and the findings ReadRefused.", object.Place, object.Resource)
		case object.State == ObjectUnreadable:
			f.add(v1alpha1.ReasonObjectUnreadable, v1alpha1.SeverityBlocksPod, name(pod), id,
				"%s of the pod needs an object of %s that is kept and cannot be read. Change it at the API server, so that it is kept anew.", object.Place, object.Resource)
		case len(object.MissingKeys) > 0 && !object.Optional:
			f.add(v1alpha1.ReasonKeyMissing, v1alpha1.SeverityBlocksPod, name(pod), id,
				"%s of the pod asks for a key that the object of %s does not have. Add the key, or make the reference optional.", object.Place, object.Resource)
		}
	}
	omit := facts.Policy != nil && facts.Policy.Snapshot.ServiceAccountTokens == v1alpha1.TokensOmit
	// Omitted tokens are told by the mirror.
	if pod.TokensMissing > 0 && !omit {
		f.add(v1alpha1.ReasonTokenMissing, v1alpha1.SeverityBlocksPod, name(pod), "serviceaccounts/"+pod.Spec.ServiceAccountName,
			"No token is kept for a token volume of the pod, so it would not mount. Can the API server issue tokens for this service account? The agent's log says what it answered.")
	}
}

func (f *findings) images(pod Pod, facts Facts) {
	asWritten := facts.Policy != nil && facts.Policy.Offline.ImagePullPolicy == v1alpha1.ImagePullAsWritten
	for _, image := range pod.Images {
		switch {
		case !image.Present:
			f.add(v1alpha1.ReasonImageMissing, v1alpha1.SeverityBlocksPod, name(pod), image.Name,
				"The image of %s is not on the node. Pull it while the registry can be reached, and let the policy pin it (cacheWarmup.images).", image.User)
		case image.Damaged != "":
			f.add(v1alpha1.ReasonImageDamaged, v1alpha1.SeverityBlocksPod, name(pod), image.Name,
				"The image of %s is listed, and %s. Remove the image and pull it again.", image.User, image.Damaged)
		case image.Always && image.Unproven:
			f.add(v1alpha1.ReasonImagePullNeeded, v1alpha1.SeverityBlocksPod, name(pod), image.Name,
				"The pull policy of %s is Always, and it has not run with this image on this node: kubelet asks the registry at its start. Set it to IfNotPresent.", image.User)
		case image.Always && asWritten:
			f.add(v1alpha1.ReasonImagePullNeeded, v1alpha1.SeverityBlocksPod, name(pod), image.Name,
				"The pull policy of %s is Always, which asks the registry at each start. Set it to IfNotPresent, or offline.imagePullPolicy of the policy to UseLocal.", image.User)
		case image.Refused && image.Pulling:
			f.add(v1alpha1.ReasonImageCredentials, v1alpha1.SeverityBlocksPod, name(pod), image.Name,
				"Kubelet's pull of the image of %s has not ended, as when the power goes meanwhile: kubelet asks the registry before a pod may use it. Start a pod with that image and its pull secret while the registry can be reached.", image.User)
		case image.Refused:
			f.add(v1alpha1.ReasonImageCredentials, v1alpha1.SeverityBlocksPod, name(pod), image.Name,
				"Kubelet would ask the registry before %s may use its image: the pull secret with which it was pulled is not among the pod's. Give the pod that secret, or pull again.", image.User)
		}
		if image.Present && image.Changed {
			f.add(v1alpha1.ReasonImageChanged, v1alpha1.SeveritySlows, name(pod), image.Name,
				"The name of the image of %s now leads to another image on the node than the one that it runs: it would start with the other one. Name images by digest.", image.User)
		}
	}
}

// unpinned is told once for the node: it is usually all images or none.
func (f *findings) unpinned(facts Facts) {
	for _, pod := range facts.Pods {
		for _, image := range pod.Images {
			if image.Present && !image.Pinned {
				f.node(v1alpha1.ReasonImageNotPinned, v1alpha1.SeveritySlows, image.Name,
					"This image, and perhaps others of running pods, is not pinned: kubelet may remove it when the disk fills and its pod is stopped. Set cacheWarmup.images.pinning to Enabled.")
				return
			}
		}
	}
}

func (f *findings) nature(pod Pod, facts Facts) {
	switch once := pod.Spec.RestartPolicy == corev1.RestartPolicyNever && pod.Status.Phase == corev1.PodRunning; {
	case once && ofJob(pod.Pod):
		// The verdict is not about a run that is to end: the next one is its Job's to make.
		f.add(v1alpha1.ReasonNeverRestarted, v1alpha1.SeveritySlows, name(pod), "restartPolicy",
			"The pod's restartPolicy is Never: a restart ends it, and its Job makes another when the API server is heard, unless backoffLimit is used up. With OnFailure it runs again cut off.")
	case once:
		f.add(v1alpha1.ReasonNeverRestarted, v1alpha1.SeverityBlocksPod, name(pod), "restartPolicy",
			"The pod's restartPolicy is Never: a restart ends it, and nobody replaces it while the node is cut off. Use OnFailure if it may run again.")
	}
	for _, resource := range devicesOf(pod.Pod, facts.Node.Devices) {
		f.add(v1alpha1.ReasonDevicePlugin, v1alpha1.SeverityBlocksPod, name(pod), resource,
			"The pod uses %s of a device plugin. When kubelet admits the pod before the plugin has registered, the pod fails for good. Run the plugin as a service of the node that starts before kubelet admits pods.", resource)
	}
	for _, volume := range pod.Spec.Volumes {
		if volume.Projected != nil {
			for _, source := range volume.Projected.Sources {
				if source.PodCertificate != nil {
					f.add(v1alpha1.ReasonPodCertificate, v1alpha1.SeverityBlocksPod, name(pod), "volume/"+volume.Name,
						"Volume %q projects a pod certificate, which a signer of the cluster must issue anew at each start. Use a secret if the pod must start cut off.", volume.Name)
				}
			}
		}
		f.hostPath(pod, volume, facts)
	}
	if pod.Attached && (facts.Policy == nil || facts.Policy.Offline.AttachedVolumes != v1alpha1.AttachedVolumesStart) {
		f.add(v1alpha1.ReasonAttachedVolumeNotSynced, v1alpha1.SeverityBlocksPod, name(pod), "",
			"A volume of the pod is for one node alone: the pod waits until the API server was heard after the restart, since the volume may be attached elsewhere by then. offline.attachedVolumes: Start does not wait.")
	}
	for _, driver := range pod.Drivers {
		f.add(v1alpha1.ReasonDriverLate, v1alpha1.SeveritySlows, name(pod), "csidrivers/"+driver,
			"The pod waits until the CSI driver %s has registered. Put the driver's pods into an early stage (startupOrdering).", driver)
	}
	if len(pod.Spec.ResourceClaims) > 0 {
		f.add(v1alpha1.ReasonDriverLate, v1alpha1.SeveritySlows, name(pod), "resourceclaims",
			"The pod waits until the drivers of its resource claims have registered. Put the drivers' pods into an early stage (startupOrdering).")
	}
}

// ofJob says whether a pod's Job makes another in its place.
func ofJob(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "Job" && strings.HasPrefix(owner.APIVersion, "batch/")
}

func (f *findings) hostPath(pod Pod, volume corev1.Volume, facts Facts) {
	if volume.HostPath == nil {
		return
	}
	path := volume.HostPath.Path
	kind := corev1.HostPathUnset
	if volume.HostPath.Type != nil {
		kind = *volume.HostPath.Type
	}
	// Without a type the runtime makes what is missing.
	mustBeThere := kind != corev1.HostPathUnset && kind != corev1.HostPathDirectoryOrCreate && kind != corev1.HostPathFileOrCreate
	if mustBeThere && facts.Node.Volatile != nil && facts.Node.Volatile(path) && !kept(path, facts) {
		f.add(v1alpha1.ReasonHostPathVolatile, v1alpha1.SeverityBlocksPod, name(pod), path,
			"Volume %q needs %s, which a restart empties and nothing known makes again. Use DirectoryOrCreate, make it with tmpfiles.d, or add the file to snapshot.nodeFiles.", volume.Name, path)
	}
	if mustBeThere && facts.Node.NeverMount != nil && facts.Node.NeverMount(path) {
		f.add(v1alpha1.ReasonHostPathLate, v1alpha1.SeverityBlocksPod, name(pod), path,
			"Volume %q needs %s on a disk that nothing mounts at boot. Mount it from /etc/fstab, before kubelet.service.", volume.Name, path)
	} else if facts.Node.LateMount != nil && facts.Node.LateMount(path) {
		f.add(v1alpha1.ReasonHostPathLate, v1alpha1.SeveritySlows, name(pod), path,
			"Volume %q is on a disk that the boot does not wait for: the pod may start before it is mounted. Mount it from /etc/fstab without nofail, before kubelet.service.", volume.Name)
	}
}

// kept says whether a path is there again after a restart: the policy keeps it, or a pod of
// the node makes it.
func kept(path string, facts Facts) bool {
	below := func(child, parent string) bool {
		return child == parent || strings.HasPrefix(child, strings.TrimSuffix(parent, "/")+"/")
	}
	if facts.Policy != nil {
		for _, file := range facts.Policy.Snapshot.NodeFiles {
			if below(file, path) {
				return true
			}
		}
	}
	for _, other := range facts.Pods {
		for _, volume := range other.Spec.Volumes {
			if h := volume.HostPath; h != nil && h.Type != nil && *h.Type == corev1.HostPathDirectoryOrCreate && below(h.Path, path) {
				return true
			}
		}
	}
	return false
}

// devicesOf are the resources of a pod that device plugins give.
func devicesOf(pod *corev1.Pod, devices []string) []string {
	var found []string
	for _, device := range devices {
		if asks(pod, corev1.ResourceName(device)) {
			found = append(found, device)
		}
	}
	return found
}

func asks(pod *corev1.Pod, resource corev1.ResourceName) bool {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, c := range containers {
			if quantity, ok := c.Resources.Limits[resource]; ok && !quantity.IsZero() {
				return true
			}
		}
	}
	return false
}
