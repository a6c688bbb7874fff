package readiness

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// csiDriver is that of test/tools/csi, as a service of the node.
const csiDriver = "csi.test"

const csiUnit = `[Unit]
Description=CSI driver for tests
[Service]
StateDirectory=csi-test
ExecStart=/usr/local/bin/csi-test -driver ` + csiDriver + ` -node ` + nodeName + `
Restart=always
RestartSec=1
[Install]
WantedBy=multi-user.target
`

// csiObjects are the driver, and a volume with its claim that one node alone may use.
const csiObjects = `apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: ` + csiDriver + `}
spec: {attachRequired: true, podInfoOnMount: false}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  claimRef: {namespace: default, name: %[1]s}
  csi: {driver: ` + csiDriver + `, volumeHandle: %[1]s}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %[1]s, namespace: default}
spec: {accessModes: [ReadWriteOnce], volumeName: %[1]s, storageClassName: "", resources: {requests: {storage: 1Gi}}}
`

// installProgram builds one of test/tools into /usr/local/bin/NAME-test and starts its unit.
func installProgram(ctx context.Context, name, unit string) {
	GinkgoHelper()
	program := filepath.Join(GinkgoT().TempDir(), name)
	build := exec.CommandContext(ctx, "go", "build", "-o", program, ".")
	build.Dir = "../../tools/" + name
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	said, err := build.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", said)
	content, err := os.ReadFile(program)
	Expect(err).NotTo(HaveOccurred())
	write(ctx, "/usr/local/bin/"+name+"-test", string(content))
	write(ctx, systemd+name+"-test.service", unit)
	shell(ctx, "chmod 755 /usr/local/bin/"+name+"-test && systemctl daemon-reload && systemctl enable --now "+name+"-test.service")
}

// attachable makes a volume that is attached to the node once a pod wants it. The controller
// manager makes the VolumeAttachment; that it is attached is said here, as by a driver's
// controller.
func attachable(volume string) step {
	return func(ctx context.Context) {
		GinkgoHelper()
		installProgram(ctx, "csi", csiUnit)
		applyText(ctx, fmt.Sprintf(csiObjects, volume))
		Eventually(ctx, func(g Gomega) {
			registered, err := client.StorageV1().CSINodes().Get(ctx, nodeName, metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(registered.Spec.Drivers).To(HaveLen(1))
		}).WithTimeout(soon).WithPolling(poll).Should(Succeed(), journal)
		attachment := fmt.Sprintf("csi-%x", sha256.Sum256([]byte(volume+csiDriver+nodeName)))
		// Once there is a pod, whose start waits for it.
		go func() {
			for ; ctx.Err() == nil; time.Sleep(poll) {
				_, err := client.StorageV1().VolumeAttachments().Patch(ctx, attachment, "application/merge-patch+json",
					[]byte(`{"status":{"attached":true}}`), metav1.PatchOptions{}, "status")
				if err == nil {
					return
				}
			}
		}()
	}
}

func claim(name string) change {
	return volume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}})
}
