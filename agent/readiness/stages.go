package readiness

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"rekindle.edge/api/v1alpha1"
)

// Pods that others need are known by the directories of the node that they write to.
const (
	pluginsDir      = "/var/lib/kubelet/plugins"
	registryDir     = "/var/lib/kubelet/plugins_registry"
	devicePluginDir = "/var/lib/kubelet/device-plugins"
	cniConfigDir    = "/etc/cni/net.d"
)

// stages finds pods that a stage lets start before a pod that they need: their stage waits
// until it gives up, or is opened early.
func (f *findings) stages(facts Facts) {
	f.emptyStages(facts)
	places := map[types.UID]Pod{}
	for _, pod := range facts.Pods {
		places[pod.UID] = pod
	}
	for _, pod := range facts.Pods {
		for _, provider := range facts.Pods {
			if provider.Stage <= pod.Stage {
				continue
			}
			if why := needs(pod, provider, facts.Node.Devices); why != "" {
				f.add(v1alpha1.ReasonStageOrder, v1alpha1.SeveritySlows, name(pod), "pod/"+name(provider),
					"The pod is in stage %s and needs %s of a pod in the later stage %s: its stage waits in vain. Put the other pod into the same or an earlier stage.", pod.StageName, why, provider.StageName)
				break
			}
		}
		f.calls(pod, places)
	}
}

// calls finds services that a pod names and whose pods on this node all start later.
func (f *findings) calls(pod Pod, places map[types.UID]Pod) {
	for _, call := range pod.Calls {
		var later *Pod
		for _, uid := range call.Pods {
			server, known := places[uid]
			if !known {
				continue
			}
			if server.Stage <= pod.Stage {
				later = nil
				break
			}
			later = &server
		}
		if later != nil {
			f.add(v1alpha1.ReasonStageOrder, v1alpha1.SeveritySlows, name(pod), "services/"+call.Service,
				"The pod is in stage %s and names the service %s, whose pods are in the later stage %s: if it is not Ready without them, its stage waits in vain. Exchange the stages.", pod.StageName, call.Service, later.StageName)
		}
	}
}

// emptyStages finds stages that select nothing, as by a label that is misspelt.
func (f *findings) emptyStages(facts Facts) {
	if facts.Policy == nil || len(facts.Pods) == 0 {
		return
	}
	used := map[string]bool{}
	for _, pod := range facts.Pods {
		used[pod.StageName] = true
	}
	if used[""] {
		return // it is not known where pods are
	}
	for _, stage := range facts.Policy.StartupOrdering.Stages {
		if !used[stage.Name] {
			f.node(v1alpha1.ReasonStageEmpty, v1alpha1.SeveritySlows, "stages/"+stage.Name,
				"The stage %s of startupOrdering selects no pod of this node, or stages before it have them all. Check its selectors, if this node should have such pods.", stage.Name)
		}
	}
}

// needs says what of a provider a pod needs before it can be Ready; empty: nothing known.
func needs(pod, provider Pod, devices []string) string {
	if pod.UID == provider.UID {
		return ""
	}
	for _, driver := range pod.Drivers {
		if mounts(provider, pluginsDir+"/"+driver) {
			return "the CSI driver " + driver
		}
	}
	if len(pod.Spec.ResourceClaims) > 0 && mounts(provider, registryDir) && len(provider.Spec.ResourceClaims) == 0 {
		return "a driver of its resource claims, perhaps,"
	}
	if len(devicesOf(pod.Pod, devices)) > 0 && mounts(provider, devicePluginDir) {
		return "a device plugin"
	}
	if !pod.Spec.HostNetwork && provider.Spec.HostNetwork && writesCNI(provider.Pod) {
		return "the pod network"
	}
	return ""
}

// mounts says whether a pod has that directory of the node, or one in it.
func mounts(pod Pod, dir string) bool {
	for _, volume := range pod.Spec.Volumes {
		if volume.HostPath != nil {
			path := strings.TrimSuffix(volume.HostPath.Path, "/")
			if path == dir || strings.HasPrefix(path, dir+"/") {
				return true
			}
		}
	}
	return false
}

// writesCNI says whether a pod has the directory of CNI configurations mounted, and may
// write to it.
func writesCNI(pod *corev1.Pod) bool {
	names := map[string]bool{}
	for _, volume := range pod.Spec.Volumes {
		if volume.HostPath != nil && strings.TrimSuffix(volume.HostPath.Path, "/") == cniConfigDir {
			names[volume.Name] = true
		}
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, c := range containers {
			for _, mount := range c.VolumeMounts {
				if names[mount.Name] && !mount.ReadOnly {
					return true
				}
			}
		}
	}
	return false
}
