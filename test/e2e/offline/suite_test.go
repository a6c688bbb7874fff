// Package offline shows on a real node that one which restarts cut off comes back by
// itself, and that what it did meanwhile is handed over when the link is back.
package offline

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/cluster"
	"rekindle.edge/test/edgenode"
	"rekindle.edge/test/scenario/spec"
)

const (
	binary   = spec.Binary
	nodeName = "edge-1"
	pods     = 10
	poll     = spec.Poll
	soon     = spec.Soon
	// batch is more than the agent takes to write changes to the disk.
	batch = 5 * time.Second
)

var (
	shared *cluster.Cluster
	client kubernetes.Interface
	// recoveries reads and writes the product's kinds.
	recoveries ctrl.Client
	node       *edgenode.Node
)

func TestOffline(t *testing.T) { spec.Run(t, "Offline") }

var _ = BeforeSuite(func(ctx SpecContext) {
	shared = spec.Start(ctx, spec.RBAC, spec.CRDs)
	client, recoveries = spec.Clientset(shared), spec.Client(shared)
	node = spec.NewNode(ctx, shared, nodeName, func(o *edgenode.Options) { o.KubeProxy, o.Logind = true, true })
	spec.FirstBoot(ctx, node)
	spec.SetPolicy(ctx, recoveries, nodeName, v1alpha1.NodeRecoverySpec{})
	spec.Install(ctx, node)

	_, err := client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"colour": "blue"},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = client.CoreV1().Secrets(metav1.NamespaceDefault).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "key"}, StringData: map[string]string{"key": "secret"},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	for i := range pods {
		spec.CreatePods(ctx, client, webPod(i))
	}
	waitReady(ctx, allPods()...)
})

// Each spec finds the node on, the link up, and all web pods as they were made. What a spec
// that failed has left of them is made anew.
var _ = BeforeEach(OncePerOrdered, func(ctx SpecContext) {
	Expect(node.RestoreWAN(ctx)).To(Succeed())
	if node.Current() == nil {
		spec.Boot(ctx, node)
	}
	untainted(ctx)
	all := upstreamPods(ctx)
	for i := range pods {
		pod, ok := all[podName(i)]
		if ok && pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded {
			continue
		}
		if ok {
			removePod(ctx, pod.Name)
		}
		spec.CreatePods(ctx, client, webPod(i))
	}
	inStep(ctx)
}, NodeTimeout(3*time.Minute))

func full() { spec.Full() }

// webPod uses what a pod may want of the API: a token, a configmap in a volume and in its
// environment, a secret, its own labels, and a configmap that need not be there.
func webPod(i int) *corev1.Pod {
	pod := edgenode.WebPod(podName(i), nodeName)
	optional := true
	local := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	pod.Spec.Volumes = append(pod.Spec.Volumes,
		corev1.Volume{Name: "settings", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: local("settings")}}},
		corev1.Volume{Name: "key", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "key"}}},
		corev1.Volume{Name: "none", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: local("none"), Optional: &optional}}},
		corev1.Volume{Name: "labels", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{{
			Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"},
		}}}}},
	)
	container := &pod.Spec.Containers[0]
	for _, volume := range pod.Spec.Volumes[len(pod.Spec.Volumes)-4:] {
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: volume.Name, MountPath: "/" + volume.Name})
	}
	container.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: local("settings")}}}
	return pod
}

func podName(i int) string { return fmt.Sprintf("web-%d", i) }

func say(format string, args ...any) { spec.Say(format, args...) }

func journal() string { return spec.Journal(node) }

// tail is the end of a log of this boot.
func tail(name string) string { return spec.Tail(node, name) }

func wholeLog(name string) string { return spec.Log(node, name) }

var _ = JustAfterEach(func() {
	if CurrentSpecReport().Failed() && node != nil {
		say("%s", journal())
	}
})

// powerCut takes the power once all changes are on the disk, and boots with the WAN as it
// is said to be.
func powerCut(ctx context.Context, wan edgenode.WANMode) {
	GinkgoHelper()
	spec.Settle(ctx, node)
	spec.PowerCut(ctx, node, wan)
}

func allPods() []string {
	var names []string
	for i := range pods {
		names = append(names, podName(i))
	}
	return names
}
