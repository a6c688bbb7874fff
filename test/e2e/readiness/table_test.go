package readiness

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/edgenode"
	"rekindle.edge/test/images"
)

// row is one pod, a fault that is put in while it runs, and what is expected of it.
type row struct {
	name string
	// change makes the pod what it is.
	change func(*corev1.Pod)
	// prepare what it needs; put the fault in. Either may be nil.
	prepare, fault func(context.Context)
	// phase before the cut, if it is not Running and Ready.
	phase corev1.PodPhase
	// reason that the verdict must have; empty: the pod comes back, or has ended before.
	reason string
}

func volume(source corev1.VolumeSource) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "x", VolumeSource: source})
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "x", MountPath: "/x"})
	}
}

func hostPath(path string, kind corev1.HostPathType) func(*corev1.Pod) {
	return volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path, Type: &kind}})
}

func secret(name string, optional bool) func(*corev1.Pod) {
	return volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name, Optional: &optional}})
}

func settings(name, key string, optional bool) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key, Optional: &optional,
		}}}}
	}
}

func restarts(policy corev1.RestartPolicy, args ...string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.RestartPolicy = policy
		pod.Spec.Containers[0].Args = append(pod.Spec.Containers[0].Args, args...)
		if len(args) > 0 {
			pod.Spec.Containers[0].ReadinessProbe = nil
		}
	}
}

func image(name string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = name }
}

func tag(name string) func(context.Context) {
	return func(ctx context.Context) { shell(ctx, "ctr -n k8s.io images tag "+images.Web+" "+name) }
}

func untag(name string) func(context.Context) {
	return func(ctx context.Context) { shell(ctx, "ctr -n k8s.io images rm "+name) }
}

func makeSecret(name string) func(context.Context) {
	return func(ctx context.Context) { kubectl(ctx, "create", "secret", "generic", name, "--from-literal=k=v") }
}

func dropSecret(name string) func(context.Context) {
	return func(ctx context.Context) { kubectl(ctx, "delete", "secret", name) }
}

func makeSettings(name string) func(context.Context) {
	return func(ctx context.Context) { kubectl(ctx, "create", "configmap", name, "--from-literal=k=v") }
}

func dropKey(name string) func(context.Context) {
	return func(ctx context.Context) {
		kubectl(ctx, "patch", "configmap", name, "--type=json", `-p=[{"op":"remove","path":"/data/k"}]`)
	}
}

// The expected outcome is written by hand. All rows share one boot.
var table = []row{
	{name: "plain"},
	{name: "image-removed", prepare: tag("example.com/removed:1"), change: image("example.com/removed:1"), fault: untag("example.com/removed:1"), reason: v1alpha1.ReasonImageMissing},
	{name: "other-name-removed", prepare: tag("example.com/spare:1"), fault: untag("example.com/spare:1")},
	{name: "secret-removed", prepare: makeSecret("gone"), change: secret("gone", false), fault: dropSecret("gone"), reason: v1alpha1.ReasonObjectMissing},
	{name: "optional-secret-removed", prepare: makeSecret("spare"), change: secret("spare", true), fault: dropSecret("spare")},
	{name: "optional-secret-never-there", change: secret("never", true)},
	{name: "key-removed", prepare: makeSettings("thin"), change: settings("thin", "k", false), fault: dropKey("thin"), reason: v1alpha1.ReasonKeyMissing},
	{name: "optional-key-removed", prepare: makeSettings("slim"), change: settings("slim", "k", true), fault: dropKey("slim")},
	{name: "directory-in-memory", prepare: func(ctx context.Context) { shell(ctx, "mkdir -p /run/shop") }, change: hostPath("/run/shop", corev1.HostPathDirectory), reason: v1alpha1.ReasonHostPathVolatile},
	{name: "directory-made-in-memory", change: hostPath("/run/made", corev1.HostPathDirectoryOrCreate)},
	{name: "directory-on-disk", prepare: func(ctx context.Context) { shell(ctx, "mkdir -p /var/lib/shop") }, change: hostPath("/var/lib/shop", corev1.HostPathDirectory)},
	{name: "runs-once", change: restarts(corev1.RestartPolicyNever), reason: v1alpha1.ReasonNeverRestarted},
	{name: "runs-until-it-succeeds", change: restarts(corev1.RestartPolicyOnFailure)},
	{name: "finished", change: restarts(corev1.RestartPolicyNever, "-exit=0"), phase: corev1.PodSucceeded},
}

var _ = Describe("The verdict before the outage", func() {
	It("is what the outage brings, pod by pod", func(ctx SpecContext) {
		for _, r := range table {
			if r.prepare != nil {
				r.prepare(ctx)
			}
			pod := edgenode.WebPod(r.name, nodeName)
			if r.change != nil {
				r.change(pod)
			}
			_, err := client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		for _, r := range table {
			phase := corev1.PodRunning
			if r.phase != "" {
				phase = r.phase
			}
			Eventually(ctx, isReady).WithArguments(ctx, r.name, phase).WithTimeout(soon).WithPolling(poll).Should(BeTrue(), "%s\n%s", r.name, journal)
		}

		By("the verdict before any fault: pods that cannot come back by their nature, and nothing else")
		natural := map[string]string{}
		for _, r := range table {
			if r.reason != "" && r.fault == nil {
				natural[r.name] = r.reason
			}
		}
		Eventually(ctx, func() map[string]string { return blocked(verdict(ctx)) }).WithTimeout(soon).WithPolling(time.Second).Should(Equal(natural), journal)

		By("each fault is told within 5 s, by doctor and in the status")
		for _, r := range table {
			if r.fault == nil {
				continue
			}
			began := time.Now()
			r.fault(ctx)
			if r.reason == "" {
				continue
			}
			Eventually(ctx, func() []string {
				return []string{blocked(verdict(ctx))[r.name], told(ctx, r.name)}
			}).WithTimeout(flip).WithPolling(poll).Should(HaveEach(r.reason), "doctor and status of %s\n%s", r.name, journal)
			AddReportEntry("told after "+r.name, time.Since(began).Round(time.Millisecond).String())
		}

		By("the verdict is taken, and the power goes while the node is cut off")
		time.Sleep(batch)
		report := verdict(ctx)
		says := blocked(report)
		Expect(says).NotTo(HaveKey(""), "the node as a whole")
		Expect(report.Ready).To(Equal(metav1.ConditionFalse))
		shell(ctx, "sync")
		Expect(node.PowerCut(ctx)).To(Succeed())
		Expect(node.CutWAN(ctx, edgenode.WANBlackhole)).To(Succeed())
		boot, err := node.Boot(ctx)
		Expect(err).NotTo(HaveOccurred())

		By("the outcome, by kubelet's own log, at three times the target")
		back := func() map[string]bool {
			witness, err := boot.Witness()
			Expect(err).NotTo(HaveOccurred())
			found := map[string]bool{}
			for _, r := range table {
				_, found[r.name] = witness.FirstReady(metav1.NamespaceDefault + "/" + r.name)
			}
			return found
		}
		var outcome map[string]bool
		for boot.Since(time.Now()) < 3*target {
			time.Sleep(time.Second)
			outcome = back()
		}
		agree := 0
		for _, r := range table {
			came, expected := outcome[r.name], r.reason == "" && r.phase == ""
			said := says[r.name]
			// A pod that has ended is not asked for.
			fits := said == r.reason && came == expected
			if fits {
				agree++
			}
			GinkgoWriter.Printf("%-30s verdict %-20s came back %-5t agree %t\n", r.name, cmp.Or(said, "comes back"), came, fits)
		}
		GinkgoWriter.Printf("verdict and outcome agree: %d of %d\n", agree, len(table))
		Expect(agree).To(Equal(len(table)), journal)
	}, SpecTimeout(8*time.Minute))
})

// told is the reason of the pod in the NodeRecovery's status, while RestartReady is False.
func told(ctx context.Context, pod string) string {
	var recovery v1alpha1.NodeRecovery
	Expect(json.Unmarshal([]byte(kubectl(ctx, "get", "noderecovery", nodeName, "-o", "json")), &recovery)).To(Succeed())
	for _, c := range recovery.Status.Conditions {
		if c.Type == v1alpha1.ConditionRestartReady && c.Status != metav1.ConditionFalse {
			return ""
		}
	}
	for _, finding := range recovery.Status.Findings {
		if finding.Pod == metav1.NamespaceDefault+"/"+pod {
			return finding.Reason
		}
	}
	return ""
}
