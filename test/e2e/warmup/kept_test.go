package warmup

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/edgenode"
	"rekindle.edge/test/images"
)

const (
	snapshots = "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots"
	blobs     = "/var/lib/containerd/io.containerd.content.v1.content/blobs/sha256"
)

// agentLog is what the agent has said in this boot.
func agentLog() string { return log("agent.log") }

var _ = Describe("Kept images", func() {
	It("of the policy are pulled with a pod's secret, and start cut off", func(ctx SpecContext) {
		till := push("private/till", web(ctx, "till"))
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "pull"}, Type: corev1.SecretTypeDockerConfigJson,
			StringData: map[string]string{corev1.DockerConfigJsonKey: fmt.Sprintf(`{"auths":{%q:{"username":"till","password":"7Hq!x"}}}`, host)},
		}
		Expect(admin.Create(ctx, secret)).To(Succeed())
		policy(ctx, v1alpha1.NodeRecoverySpec{CacheWarmup: v1alpha1.CacheWarmup{Images: v1alpha1.WarmImages{Extra: []string{till}}}})
		warm(ctx, imagesAre(1, 0, 0, v1alpha1.ImageProblem{Image: till, Reason: v1alpha1.ImagePullFailed}))
		pod := edgenode.WebPod("holder", nodeName)
		pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}}
		create(ctx, pod)
		warm(ctx, imagesAre(2, 2, 2))
		Expect(agentLog()+journal()).NotTo(ContainSubstring("7Hq!x"), "a secret is never logged")

		By("a power cut, and a static pod that nobody has run before")
		powerCut(ctx)
		put(ctx, "/etc/kubernetes/manifests/till.yaml", "644", fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: till, namespace: default}
spec:
  containers:
  - name: web
    image: %s
    imagePullPolicy: IfNotPresent
    ports: [{containerPort: 8080}]
    readinessProbe: {periodSeconds: 1, httpGet: {path: /readyz, port: 8080}}
`, till))
		DeferCleanup(func(ctx SpecContext) { sh(ctx, "rm -f /etc/kubernetes/manifests/till.yaml") })
		Eventually(ctx, readyHere).WithArguments("till-"+nodeName).WithTimeout(soon).WithPolling(poll).Should(BeTrue(), journal)
	}, SpecTimeout(5*time.Minute))

	It("whose layers a power cut has zeroed are mended", func(ctx SpecContext) {
		Expect(node.RestoreWAN(ctx)).To(Succeed())
		used, unused := push("used", web(ctx, "used")), push("unused", web(ctx, "unused"))
		policy(ctx, v1alpha1.NodeRecoverySpec{CacheWarmup: v1alpha1.CacheWarmup{Images: v1alpha1.WarmImages{Extra: []string{unused}}}})
		create(ctx, podOf("used", used))
		warm(ctx, imagesAre(2, 2, 2))
		sum := func(ctx context.Context, name string) string {
			return sh(ctx, "cat %s/*/fs/%s 2>/dev/null | sha256sum", snapshots, name)
		}
		before := map[string]string{"used": sum(ctx, "used"), "unused": sum(ctx, "unused")}

		By("files and a blob lose their content")
		blob := sh(ctx, "cd %s; for b in *; do if tar tf $b 2>/dev/null | grep -qx unused; then echo $b; fi; done", blobs)
		Expect(blob).To(HaveLen(64))
		zero := "f=%s; dd if=/dev/zero of=$f bs=$(stat -c %%s $f) count=1 conv=notrunc 2>/dev/null"
		sh(ctx, "systemctl stop kubelet")
		sh(ctx, "for t in $(ctr -n k8s.io tasks ls -q); do ctr -n k8s.io tasks kill -a -s KILL $t || true; done; sleep 2")
		sh(ctx, zero, sh(ctx, "ls %s/*/fs/used", snapshots))
		sh(ctx, zero, sh(ctx, "ls %s/*/fs/unused", snapshots))
		sh(ctx, zero, filepath.Join(blobs, blob))
		Expect(sum(ctx, "used")).NotTo(Equal(before["used"]))
		sh(ctx, "sync")
		Expect(node.PowerCut(ctx)).To(Succeed())
		_, err := node.Boot(ctx)
		Expect(err).NotTo(HaveOccurred())

		Eventually(ctx, readyHere).WithArguments("used").WithTimeout(2*time.Minute).WithPolling(poll).Should(BeTrue(), journal)
		Expect(sum(ctx, "used")).To(Equal(before["used"]))
		Eventually(ctx, func() string { return sum(ctx, "unused") }).WithTimeout(3*time.Minute).WithPolling(time.Second).
			Should(Equal(before["unused"]), journal)
		warm(ctx, imagesAre(2, 2, 2))
		Expect(agentLog()).To(ContainSubstring("Image was mended"))
	}, SpecTimeout(8*time.Minute))

	It("outlive kubelet's garbage collection", func(ctx SpecContext) {
		Expect(node.RestoreWAN(ctx)).To(Succeed())
		spare, junk := push("spare", noise("spare", 1<<20)), push("junk", noise("junk", 1<<20))
		// Other specs need the one that every node has.
		policy(ctx, v1alpha1.NodeRecoverySpec{CacheWarmup: v1alpha1.CacheWarmup{Images: v1alpha1.WarmImages{
			FromWorkloads: v1alpha1.ToggleDisabled, Extra: []string{spare, images.Web},
		}}})
		warm(ctx, imagesAre(2, 2, 2))
		sh(ctx, "ctr -n k8s.io images pull --plain-http %s >/dev/null", junk)
		// Under pressure kubelet removes images that no container uses and that it has known for 2 minutes, here for a
		// second. Without pods to evict, that is all.
		sh(ctx, "cd /var/lib/kubelet; sed -i.before 's/fs.available: 1%%/fs.available: 99%%/' config.yaml; echo 'imageMinimumGCAge: 1s' >>config.yaml; systemctl restart kubelet")
		DeferCleanup(func(ctx SpecContext) {
			sh(ctx, "mv /var/lib/kubelet/config.yaml.before /var/lib/kubelet/config.yaml; systemctl restart kubelet")
		})
		Eventually(ctx, labels).WithArguments(ctx, junk).WithTimeout(soon).WithPolling(poll).Should(BeEmpty(), "nobody wants this one")
		Expect(labels(ctx, spare)).To(ContainSubstring(pinLabel))
		Expect(log("kubelet.log")).To(ContainSubstring("Attempting to delete unused images"))
	}, SpecTimeout(3*time.Minute))
})
