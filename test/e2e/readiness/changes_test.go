package readiness

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"rekindle.edge/test/images"
)

// change of a web pod.
type change func(*corev1.Pod)

func volume(source corev1.VolumeSource) change {
	return func(pod *corev1.Pod) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "x", VolumeSource: source})
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "x", MountPath: "/x"})
	}
}

func hostPath(path string, kind corev1.HostPathType) change {
	return volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path, Type: &kind}})
}

func secret(name string, optional bool) change {
	return volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name, Optional: &optional}})
}

func projected(settings string) change {
	return volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: settings}}},
	}}})
}

// settingsKey has one key of a configmap in the environment.
func settingsKey(name, key string, optional bool) change {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key, Optional: &optional,
		}}}}
	}
}

func restarts(policy corev1.RestartPolicy) change {
	return func(pod *corev1.Pod) { pod.Spec.RestartPolicy = policy }
}

// ends has the pod's program end at once, with success.
func ends(pod *corev1.Pod) {
	pod.Spec.Containers[0].Args, pod.Spec.Containers[0].ReadinessProbe = []string{"-exit=0"}, nil
}

func image(name string) change {
	return func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = name }
}

func pulls(policy corev1.PullPolicy) change {
	return func(pod *corev1.Pod) { pod.Spec.Containers[0].ImagePullPolicy = policy }
}

func pullSecret(name string) change {
	return func(pod *corev1.Pod) { pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: name}} }
}

// before adds a container of that image that runs before the others.
func before(image string) change {
	return func(pod *corev1.Pod) {
		pod.Spec.InitContainers = []corev1.Container{{Name: "before", Image: image, ImagePullPolicy: corev1.PullIfNotPresent, Args: []string{"-exit=0"}}}
	}
}

// beside adds a sidecar of that image.
func beside(image string) change {
	return func(pod *corev1.Pod) {
		pod.Spec.InitContainers = []corev1.Container{{
			Name: "beside", Image: image, ImagePullPolicy: corev1.PullIfNotPresent, Args: []string{"-listen=:8081"},
			RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
		}}
	}
}

func account(name string) change {
	return func(pod *corev1.Pod) { pod.Spec.ServiceAccountName = name }
}

// hostNetwork has the pod on the node's network, where its port is its own.
func hostNetwork(pod *corev1.Pod) { pod.Spec.HostNetwork = true }

func noToken(pod *corev1.Pod) { pod.Spec.AutomountServiceAccountToken = ptr.To(false) }

func class(name string) change {
	return func(pod *corev1.Pod) { pod.Spec.RuntimeClassName = &name }
}

// steps are done one after the other.
func steps(all ...step) step {
	return func(ctx context.Context) {
		for _, s := range all {
			s(ctx)
		}
	}
}

func onNode(line string) step { return func(ctx context.Context) { shell(ctx, line) } }

func inCluster(args ...string) step { return func(ctx context.Context) { kubectl(ctx, args...) } }

// tag gives the web image another name on the node.
func tag(name string) step { return onNode("ctr -n k8s.io images tag " + images.Web + " " + name) }

func untag(name string) step { return onNode("ctr -n k8s.io images rm " + name) }

func create(kind, name string, args ...string) step {
	return inCluster(append([]string{"create", kind, name}, args...)...)
}

func drop(kind, name string) step { return inCluster("delete", kind, name) }

func dropKey(name string) step {
	return inCluster("patch", "configmap", name, "--type=json", `-p=[{"op":"remove","path":"/data/k"}]`)
}
