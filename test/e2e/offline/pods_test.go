package offline

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/test/edgenode"
)

// runsDir is where pods on the node count their runs: a power cut does not undo them.
const runsDir = "/var/lib/runs"

// runsOf is the file that counts the runs of a pod's container.
func runsOf(pod, container string) string { return runsDir + "/" + pod + "-" + container }

// A podMaker builds a pod of the specs.
type podMaker struct{ *corev1.Pod }

// makePod begins with a web pod that counts the runs of its containers.
func makePod(name string) podMaker {
	p := podMaker{edgenode.WebPod(name, nodeName, "-runs="+runsOf(name, "web"))}
	return p.volume("runs", runsDir, corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: runsDir}})
}

func (p podMaker) web() *corev1.Container { return &p.Spec.Containers[0] }

// volume is mounted into all containers that there are.
func (p podMaker) volume(name, path string, source corev1.VolumeSource) podMaker {
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
	mount := corev1.VolumeMount{Name: name, MountPath: path}
	for _, containers := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range containers {
			containers[i].VolumeMounts = append(containers[i].VolumeMounts, mount)
		}
	}
	return p
}

// once makes it a pod whose containers are not started again without end. Args go to the web
// server.
func (p podMaker) once(policy corev1.RestartPolicy, args ...string) podMaker {
	p.Spec.RestartPolicy = policy
	p.web().Args = append(p.web().Args, args...)
	return p
}

// create makes the pods on the API server; they are gone before the next spec.
func create(ctx context.Context, pods ...podMaker) {
	GinkgoHelper()
	shell(ctx, "mkdir -p "+runsDir)
	for _, pod := range pods {
		_, err := client.CoreV1().Pods(pod.Namespace).Create(ctx, pod.Pod, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			removePod(ctx, pod.Name)
			if node.Current() != nil {
				shell(ctx, "rm -f "+runsOf(pod.Name, "*"))
			}
		})
	}
}

// names of pods.
func names(pods ...podMaker) []string {
	var all []string
	for _, pod := range pods {
		all = append(all, pod.Name)
	}
	return slices.Clip(all)
}
