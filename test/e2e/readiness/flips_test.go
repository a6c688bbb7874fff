package readiness

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/edgenode"
)

// flips are causes that turn the verdict in the status, and their cures.
var flips = []struct {
	name        string
	cause, cure step
	// reason, pod and object of the leading finding, as a regular expression.
	want string
}{
	{"an image is deleted with ctr", untag("example.com/flip:1"), tag("example.com/flip:1"), v1alpha1.ReasonImageMissing + " default/with-image example.com/flip:1"},
	{"a secret goes from the closure", drop("secret", "flip"), create("secret", "generic", "flip", literal), v1alpha1.ReasonObjectMissing + " default/with-secret secrets"},
	{
		"kubelet's certificate nears its end", steps(onNode("cp -p "+pki+"kubelet-client-current.pem /root/client.pem"), certificate(2*time.Minute)),
		onNode("cat /root/client.pem > " + pki + "kubelet-client-current.pem"), v1alpha1.ReasonCertificateEnding + " kubelet-client",
	},
	{"the disk fills", fill("26"), onNode("rm /var/lib/filler"), v1alpha1.ReasonDiskFull + " /var/lib/.*"},
	{
		"kubelet is pointed back at the API server", ledElsewhere,
		onNode("rm " + systemd + "kubelet.service.d/zzz-own.conf && systemctl daemon-reload && systemctl restart kubelet.service"), v1alpha1.ReasonUnhooked,
	},
	{"a pod is switched to a device resource", again("switched", asks(device)), again("switched"), v1alpha1.ReasonDevicePlugin + " default/switched " + device},
}

// again makes a pod anew, as after a change of what its controller wants.
func again(name string, changes ...change) step {
	return func(ctx context.Context) {
		GinkgoHelper()
		kubectl(ctx, "delete", "pod", name, "--ignore-not-found", "--grace-period=0", "--force")
		pod := edgenode.WebPod(name, nodeName)
		for _, change := range changes {
			change(pod)
		}
		_, err := client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
}

var _ = Describe("RestartReady in the status", func() {
	It("turns within 5 s of its cause, with the reason and the object, and back when it is cured", func(ctx SpecContext) {
		if !full() {
			Skip("not of the core; run `make test-e2e FULL=1`")
		}
		fresh(ctx, installed, nil)
		setPolicy(ctx, target, "")
		steps(devicePlugin, tag("example.com/flip:1"), create("secret", "generic", "flip", literal), onNode(noEviction),
			again("with-image", image("example.com/flip:1")), again("with-secret", secret("flip", false)), again("switched"))(ctx)
		for _, name := range []string{"with-image", "with-secret", "switched"} {
			Eventually(ctx, isAs).WithArguments(ctx, name, corev1.PodRunning).WithTimeout(soon).WithPolling(poll).Should(BeTrue(), "%s\n%s", name, journal)
		}
		const well = "True " + v1alpha1.ReasonWouldComeBack
		Eventually(ctx, leading).WithArguments(ctx).WithTimeout(soon).WithPolling(time.Second).Should(Equal(well), journal)
		var failed []string
		within := func(what string, do step, want string) {
			do(ctx)
			began := time.Now()
			said := ""
			for matches := false; !matches && time.Since(began) < 2*soon/3; time.Sleep(poll) {
				said = leading(ctx)
				matches, _ = MatchRegexp("^" + want + "$").Match(said)
			}
			took := time.Since(began).Round(100 * time.Millisecond)
			say("%-45s %6s  %s", what, took, said)
			if took > flip {
				failed = append(failed, what+": "+took.String()+" "+said)
			}
		}
		for _, f := range flips {
			within(f.name, f.cause, "False "+f.want)
			within("  cured", f.cure, well)
		}
		Expect(failed).To(BeEmpty(), journal)
	}, SpecTimeout(8*time.Minute))
})
