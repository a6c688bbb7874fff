package offline

import (
	"context"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/edgenode"
	"rekindle.edge/test/scenario/spec"
)

const (
	stateDir = "/var/lib/rekindle"
	// housekeeping is several rounds of kubelet's, each of which would remove what the list
	// of pods lacks.
	housekeeping = 20 * time.Second
)

// shell runs a line on the node.
func shell(ctx context.Context, line string) string {
	GinkgoHelper()
	return spec.Shell(ctx, node, line)
}

var _ = Describe("A store that is damaged while the node is off", func() {
	It("serves no list that may lack a pod, and the pod's data is there afterwards", func(ctx SpecContext) {
		By("a generation is sealed, with the policy as it is now")
		generations := func() string { return shell(ctx, "ls "+stateDir+" | grep generation- || true") }
		earlier := generations()
		setAttachedVolumes(ctx, v1alpha1.AttachedVolumesStart)
		setAttachedVolumes(ctx, v1alpha1.AttachedVolumesHold)
		Eventually(ctx, generations).WithTimeout(3*time.Minute).WithPolling(time.Second).
			ShouldNot(Or(BeEmpty(), Equal(earlier)), journal)

		By("a pod comes after it, with data")
		pod := edgenode.WebPod("keeper", nodeName)
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "data", MountPath: "/data"})
		pod, err := client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			removePod(ctx, pod.Name)
		})
		waitReady(ctx, pod.Name)
		data := "/var/lib/kubelet/pods/" + string(pod.UID) + "/volumes/kubernetes.io~empty-dir/data/keep"
		shell(ctx, "echo precious > "+data)

		By("the power goes, and the store is damaged")
		time.Sleep(batch)
		shell(ctx, "sync")
		Expect(node.PowerCut(ctx)).To(Succeed())
		Expect(node.EditDisk(ctx, func(root string) error {
			path := filepath.Join(root, stateDir, "rekindle.db")
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			return os.Truncate(path, info.Size()/2)
		})).To(Succeed())
		Expect(node.CutWAN(ctx, edgenode.WANBlackhole)).To(Succeed())
		_, err = node.Boot(ctx)
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, func() string { return tail("kubelet.log") }).WithTimeout(soon).WithPolling(time.Second).
			Should(And(ContainSubstring("the list of pods is held back"), ContainSubstring(string(pod.UID))), journal)
		Consistently(ctx, func() string { return shell(ctx, "cat "+data) }).WithTimeout(housekeeping).WithPolling(time.Second).Should(Equal("precious"))

		By("the link comes back")
		Expect(node.RestoreWAN(ctx)).To(Succeed())
		waitReadyHere(ctx, append(allPods(), pod.Name)...)
		Expect(shell(ctx, "cat "+data)).To(Equal("precious"))
		Expect(upstreamPods(ctx)[pod.Name].UID).To(Equal(pod.UID))
	}, SpecTimeout(8*time.Minute))
})
