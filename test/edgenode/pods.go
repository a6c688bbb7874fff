package edgenode

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"rekindle.edge/test/images"
)

const (
	// WebPort is where a web pod listens.
	WebPort = 8080
	// ReadyPath answers 200 once a web pod is ready.
	ReadyPath = "/readyz"
)

// WebPod is a service pod as people write them: one web server, a readiness probe
// with kubelet's default period of 10 s, an emptyDir, the usual token volume. It is
// bound to the node in namespace default. args go to the web server.
func WebPod(name, node string, args ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			NodeName: node,
			Containers: []corev1.Container{{
				Name: "web", Image: images.Web, Args: args, ImagePullPolicy: corev1.PullIfNotPresent,
				Ports: []corev1.ContainerPort{{ContainerPort: WebPort}},
				ReadinessProbe: &corev1.Probe{
					PeriodSeconds: 10,
					ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
						Path: ReadyPath, Port: intstr.FromInt32(WebPort),
					}},
				},
				VolumeMounts: []corev1.VolumeMount{{Name: "scratch", MountPath: "/scratch"}},
			}},
			Volumes: []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
	}
}
