package offline

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"rekindle.edge/test/edgenode"
	"rekindle.edge/test/scenario"
)

// The CSI driver of test/tools/csi, as a service of the node, with one volume.
const (
	csiDriver  = "csi.test"
	csiData    = "/var/lib/csi-test"
	csiVolume  = "data"
	csiPod     = "data-0"
	csiCommand = "/usr/local/bin/csi-test"
)

// csiUnit is the driver's service. It depends on nothing, as a driver that is a pod on the
// host's network would after a boot.
const csiUnit = `[Unit]
Description=CSI driver for tests
[Service]
ExecStart=` + csiCommand + ` -driver ` + csiDriver + ` -node ` + nodeName + ` -data ` + csiData + `
Restart=always
RestartSec=1
[Install]
WantedBy=multi-user.target
`

// installCSI builds the driver and starts it on the node, and tells the API server of it.
func installCSI(ctx context.Context) {
	GinkgoHelper()
	program := filepath.Join(GinkgoT().TempDir(), "csi")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, ".")
	build.Dir = "../../tools/csi"
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	said, err := build.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", said)
	file, err := os.Open(program)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(file.Close)
	_, err = node.ExecInput(ctx, file, "sh", "-c", "mkdir -p "+csiData+" && cat > "+csiCommand+" && chmod 755 "+csiCommand)
	Expect(err).NotTo(HaveOccurred())
	_, err = node.ExecInput(ctx, strings.NewReader(csiUnit), "sh", "-c", "cat > /etc/systemd/system/csi-test.service")
	Expect(err).NotTo(HaveOccurred())
	Expect(node.Systemctl(ctx, "daemon-reload")).To(Succeed())
	Expect(node.Systemctl(ctx, "enable", "--now", "csi-test.service")).To(Succeed())

	_, err = client.StorageV1().CSIDrivers().Create(ctx, &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: csiDriver},
		Spec:       storagev1.CSIDriverSpec{AttachRequired: ptr.To(true), PodInfoOnMount: ptr.To(false)},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.StorageV1().CSIDrivers().Delete(ctx, csiDriver, metav1.DeleteOptions{})).To(Succeed())
		_, _ = node.Exec(ctx, "systemctl", "disable", "--now", "csi-test.service")
	})
	Eventually(ctx, func(g Gomega) {
		registered, err := client.StorageV1().CSINodes().Get(ctx, nodeName, metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(registered.Spec.Drivers).To(HaveLen(1))
	}).WithTimeout(soon).WithPolling(poll).Should(Succeed(), journal)
}

// createVolume makes the volume and its claim, bound, as a StatefulSet's would be.
func createVolume(ctx context.Context) {
	GinkgoHelper()
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	_, err := client.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: csiVolume},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: modes, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef: &corev1.ObjectReference{Namespace: metav1.NamespaceDefault, Name: csiVolume},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: csiDriver, VolumeHandle: csiVolume},
			},
		},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = client.CoreV1().PersistentVolumeClaims(metav1.NamespaceDefault).Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: csiVolume},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: modes, VolumeName: csiVolume, StorageClassName: ptr.To(""),
			Resources: corev1.VolumeResourceRequirements{Requests: size},
		},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.CoreV1().PersistentVolumeClaims(metav1.NamespaceDefault).Delete(ctx, csiVolume, metav1.DeleteOptions{})).To(Succeed())
		Expect(client.CoreV1().PersistentVolumes().Delete(ctx, csiVolume, metav1.DeleteOptions{})).To(Succeed())
	})
}

// attachment is the name that kubelet looks the VolumeAttachment up by.
func attachment() string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(csiVolume+csiDriver+nodeName)))
}

// createStateful makes the pod with the volume. The controller manager makes the
// VolumeAttachment; that the volume is attached is said by the test, as by a driver's
// controller. It returns when the pod is Ready.
func createStateful(ctx context.Context) *corev1.Pod {
	GinkgoHelper()
	pod := edgenode.WebPod(csiPod, nodeName)
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: csiVolume},
	}})
	pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "data", MountPath: "/data"})
	pod, err := client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	Eventually(ctx, func() error {
		_, err := client.StorageV1().VolumeAttachments().Patch(ctx, attachment(), "application/merge-patch+json",
			[]byte(`{"status":{"attached":true}}`), metav1.PatchOptions{}, "status")
		return err
	}).WithTimeout(soon).WithPolling(poll).Should(Succeed(), "the controller manager has not made a VolumeAttachment")
	Eventually(ctx, func() bool {
		pod := upstreamPods(ctx)[csiPod]
		return scenario.Ready(&pod)
	}).WithTimeout(soon).WithPolling(poll).Should(BeTrue(), journal)
	return pod
}

// deleteStateful takes the pod away upstream as after `kubectl delete --force`, and the
// attachment with it: the volume is another node's from then on.
func deleteStateful(ctx context.Context) {
	GinkgoHelper()
	now := int64(0)
	Expect(client.CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, csiPod, metav1.DeleteOptions{GracePeriodSeconds: &now})).To(Succeed())
	Expect(client.StorageV1().VolumeAttachments().Delete(ctx, attachment(), metav1.DeleteOptions{})).To(Succeed())
}

// published is how often the volume was published on the node in its present boot.
func published(ctx context.Context) int {
	GinkgoHelper()
	journal, err := node.Exec(ctx, "cat", csiData+"/journal")
	Expect(err).NotTo(HaveOccurred())
	return strings.Count(journal, node.Current().ID+" publish "+csiVolume)
}

// started says whether kubelet made a sandbox for the pod in this boot.
func started(g Gomega) bool {
	witness, err := node.Current().Witness()
	g.Expect(err).NotTo(HaveOccurred())
	for _, sandbox := range witness.Sandboxes {
		if sandbox.Pod == "default/"+csiPod {
			return true
		}
	}
	return false
}

// linkLate is how long after kubelet's start the link comes up.
const linkLate = 20 * time.Second

// waitKubelet waits for kubelet's first line in this boot and returns when that was.
func waitKubelet(ctx context.Context) time.Time {
	GinkgoHelper()
	var first time.Time
	Eventually(ctx, func(g Gomega) {
		witness, err := node.Current().Witness()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(witness.KubeletStarts).NotTo(BeEmpty())
		first = witness.KubeletStarts[0]
	}).WithTimeout(soon).WithPolling(poll).Should(Succeed(), journal)
	return first
}
