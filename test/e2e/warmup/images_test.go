package warmup

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	. "github.com/onsi/gomega/gstruct"
	"github.com/onsi/gomega/types"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/edgenode"
	"rekindle.edge/test/images"
)

const (
	snapshots = "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots"
	blobs     = "/var/lib/containerd/io.containerd.content.v1.content/blobs/sha256"
	pinLabel  = "io.cri-containerd.pinned=pinned"
)

var (
	registry = &images.Registry{User: "till", Password: "7Hq!x"}
	// host is the registry's address, as in references.
	host string
)

// push makes a binary an image of the registry. Each has a file name of its own, by which
// it is found in the runtime's directories.
func push(repository, binary string) string {
	GinkgoHelper()
	Expect(registry.Push(repository, "1", images.Image{Binary: binary})).To(Succeed())
	return host + "/" + repository + ":1"
}

// web is the web server under a name of its own.
func web(ctx context.Context, name string) string {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	built, err := images.BuildStatic(ctx, "rekindle.edge/test/images/web", dir)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.Rename(built, filepath.Join(dir, name))).To(Succeed())
	return filepath.Join(dir, name)
}

// noise is a file that nobody runs.
func noise(name string, size int) string {
	GinkgoHelper()
	data := make([]byte, size)
	_, _ = rand.Read(data)
	path := filepath.Join(GinkgoT().TempDir(), name)
	Expect(os.WriteFile(path, data, 0o755)).To(Succeed())
	return path
}

func podOf(name, image string) *corev1.Pod {
	pod := edgenode.WebPod(name, nodeName)
	pod.Spec.Containers[0].Image = image
	return pod
}

// labels that containerd has on a name of an image; empty: it has no such name.
func labels(ctx context.Context, image string) string {
	GinkgoHelper()
	return sh(ctx, "ctr -n k8s.io images list name==%s | tail -n +2", image)
}

// warm waits until the status says this of images.
func warm(ctx context.Context, match types.GomegaMatcher) {
	GinkgoHelper()
	Eventually(ctx, func() *v1alpha1.ImagesStatus { return nodeRecovery(ctx).Status.Images }).
		WithTimeout(soon).WithPolling(poll).Should(match, journal)
}

func imagesAre(wanted, present, pinned int, problems ...any) types.GomegaMatcher {
	return PointTo(SatisfyAll(
		HaveField("Wanted", BeEquivalentTo(wanted)), HaveField("Present", BeEquivalentTo(present)),
		HaveField("Pinned", BeEquivalentTo(pinned)), HaveField("Problems", ConsistOf(problems...)),
	))
}

// agentLog is what the agent has said in this boot.
func agentLog() string { return log("agent.log", 1<<20) }

var _ = Describe("Images", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		listener, err := net.Listen("tcp", net.JoinHostPort(shared.Network().HostIP().String(), "0"))
		Expect(err).NotTo(HaveOccurred())
		server := &http.Server{Handler: registry, ReadHeaderTimeout: time.Minute}
		go func() { _ = server.Serve(listener) }()
		DeferCleanup(server.Close)
		host = listener.Addr().String()
		put(ctx, "/etc/containerd/certs.d/"+host+"/hosts.toml", "644",
			fmt.Sprintf("server = 'http://%[1]s'\n[host.'http://%[1]s']\n  capabilities = ['pull', 'resolve']\n", host))
	})

	It("of a pod are pinned while it is there, and a pin of somebody else stays", func(ctx SpecContext) {
		policy(ctx, v1alpha1.NodeRecoverySpec{})
		mine, theirs := push("mine", web(ctx, "mine")), push("theirs", web(ctx, "theirs"))
		sh(ctx, "ctr -n k8s.io images pull --plain-http %s >/dev/null", theirs)
		sh(ctx, "ctr -n k8s.io images label %s %s", theirs, pinLabel)
		a, b := podOf("mine", mine), podOf("theirs", theirs)
		create(ctx, a, b)
		warm(ctx, imagesAre(2, 2, 2))
		Expect(labels(ctx, mine)).To(SatisfyAll(ContainSubstring(pinLabel), ContainSubstring("rekindle.edge/pinned")))
		Expect(labels(ctx, theirs)).To(SatisfyAll(ContainSubstring(pinLabel), Not(ContainSubstring("rekindle.edge/pinned"))))

		for _, pod := range []*corev1.Pod{a, b} {
			Expect(admin.Delete(ctx, pod)).To(Succeed())
		}
		warm(ctx, imagesAre(0, 0, 0))
		Eventually(ctx, labels).WithArguments(ctx, mine).WithTimeout(soon).WithPolling(poll).ShouldNot(ContainSubstring(pinLabel))
		Expect(labels(ctx, theirs)).To(ContainSubstring(pinLabel))
	}, SpecTimeout(3*time.Minute))

	It("within the budget are those that matter most", func(ctx SpecContext) {
		small, large := push("small", noise("small", 1<<20)), push("large", noise("large", 2<<20))
		size := resource.MustParse("2500Ki")
		policy(ctx, v1alpha1.NodeRecoverySpec{CacheWarmup: v1alpha1.CacheWarmup{Images: v1alpha1.WarmImages{
			FromWorkloads: v1alpha1.ToggleDisabled, Extra: []string{small, large}, MaxSize: &size,
		}}})
		warm(ctx, imagesAre(2, 1, 1, v1alpha1.ImageProblem{Image: large, Reason: v1alpha1.ImageOverBudget}))
		Expect(nodeRecovery(ctx).Status.Conditions).To(ContainElement(SatisfyAll(
			HaveField("Type", v1alpha1.ConditionImagesWarm), HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonImagesMissing))))
		Eventually(ctx, labels).WithArguments(ctx, large).WithTimeout(soon).WithPolling(poll).Should(BeEmpty(), "what does not fit takes no room")
		pulls := registry.Pulls("large")
		Expect(labels(ctx, small)).To(ContainSubstring(pinLabel))
		Consistently(func() int { return registry.Pulls("large") }).WithTimeout(5*time.Second).Should(Equal(pulls), "it is not pulled again and again")
	}, SpecTimeout(3*time.Minute))

	It("of the policy are pulled with a pod's secret, outlive kubelet's garbage collection, and start cut off", func(ctx SpecContext) {
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

		By("kubelet collects garbage")
		junk := push("junk", noise("junk", 1<<20))
		sh(ctx, "ctr -n k8s.io images pull --plain-http %s >/dev/null", junk)
		sh(ctx, "cp /var/lib/kubelet/config.yaml /root/config.yaml; printf 'imageGCHighThresholdPercent: 1\nimageGCLowThresholdPercent: 0\nimageMinimumGCAge: 0s\n' >>/var/lib/kubelet/config.yaml; systemctl restart kubelet")
		Eventually(ctx, labels).WithArguments(ctx, junk).WithTimeout(soon).WithPolling(poll).Should(BeEmpty(), "nobody wants this one")
		Expect(labels(ctx, till)).To(ContainSubstring(pinLabel))
		sh(ctx, "mv /root/config.yaml /var/lib/kubelet/config.yaml; systemctl restart kubelet")

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
		sh(ctx, "ctr -n k8s.io tasks kill -a -s KILL $(ctr -n k8s.io tasks ls -q) || true; sleep 1")
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
})
