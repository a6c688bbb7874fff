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

const pinLabel = "io.cri-containerd.pinned=pinned"

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

// serveImages starts the registry, which the node reaches over its uplink alone.
func serveImages(ctx context.Context) {
	GinkgoHelper()
	listener, err := net.Listen("tcp", net.JoinHostPort(shared.Network().HostIP().String(), "0"))
	Expect(err).NotTo(HaveOccurred())
	server := &http.Server{Handler: registry, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	DeferCleanup(server.Close)
	host = listener.Addr().String()
	put(ctx, "/etc/containerd/certs.d/"+host+"/hosts.toml", "644",
		fmt.Sprintf("server = 'http://%[1]s'\n[host.'http://%[1]s']\n  capabilities = ['pull', 'resolve']\n", host))
}

var _ = Describe("Images", func() {
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
})
