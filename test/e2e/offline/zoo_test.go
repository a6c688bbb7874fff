package offline

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/edgenode"
)

const (
	staticName = "zoo-static"
	// realToken is how soon after the link is back each pod has a token that is real.
	realToken = 2 * time.Minute
)

// writeStatic gives kubelet a pod that no API server has made.
func writeStatic(ctx context.Context) {
	GinkgoHelper()
	pod := makePod(staticName)
	pod.APIVersion, pod.Kind, pod.Spec.NodeName = "v1", "Pod", ""
	manifest, err := yaml.Marshal(pod.Pod)
	Expect(err).NotTo(HaveOccurred())
	const path = "/etc/kubernetes/manifests/" + staticName + ".yaml"
	_, err = node.ExecInput(ctx, bytes.NewReader(manifest), "sh", "-c", "cat >"+path)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		shell(ctx, "rm "+path)
		waitGone(ctx, staticName+"-"+nodeName)
	})
}

// tokenFile is where kubelet keeps a pod's token on the node.
func tokenFile(pod corev1.Pod, volume string) string {
	return "/var/lib/kubelet/pods/" + string(pod.UID) + "/volumes/kubernetes.io~projected/" + volume + "/token"
}

// usualToken is the volume with the token that every pod gets.
func usualToken(pod corev1.Pod) string {
	GinkgoHelper()
	i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return strings.HasPrefix(v.Name, "kube-api-access-") })
	Expect(i).To(BeNumerically(">=", 0))
	return tokenFile(pod, pod.Spec.Volumes[i].Name)
}

var _ = Describe("Pods of every kind on a node that restarts cut off", Ordered, func() {
	var (
		ask    askers
		before map[string]corev1.Pod
		// issued are the times at which tokens were issued, by file, before the cut.
		issued  map[string]int64
		serving []string
	)
	static := staticName + "-" + nodeName

	BeforeAll(func(ctx SpecContext) {
		animals := zoo()
		ended, running := jobs()
		serving = append(names(animals...), static)
		createZooObjects(ctx)
		create(ctx, slices.Concat(animals, ended, running)...)
		writeStatic(ctx)
		waitReady(ctx, append(names(running...), serving...)...)
		for name, phase := range map[string]corev1.PodPhase{"job-never": corev1.PodSucceeded, "job-on-failure": corev1.PodSucceeded, "job-failed": corev1.PodFailed} {
			Eventually(ctx, upstreamPods).WithArguments(ctx).WithTimeout(soon).WithPolling(poll).
				Should(HaveKeyWithValue(name, HaveField("Status.Phase", phase)))
		}
		shell(ctx, "echo kept >/proc/"+process(ctx, "zoo-config")+"/root/scratch/data; echo claimed >/var/lib/claim/data")

		By("the API server allows what is asked of kubelet")
		ask = newAskers(ctx)
		Expect(ask.operator.ask(ctx, askLogs)).To(Equal("200"))
		Expect(ask.scraper.ask(ctx, askMetrics)).To(Equal("200"))

		before = upstreamPods(ctx)
		issued = map[string]int64{}
		for _, path := range []string{tokenFile(before["zoo-token"], "mixed"), usualToken(before["web-0"]), usualToken(before["zoo-token"])} {
			issued[path] = claimsOf(shell(ctx, "cat "+path)).Issued
		}
		DeferCleanup(func(ctx SpecContext) { Expect(node.RestoreWAN(ctx)).To(Succeed()) })
		powerCut(ctx, edgenode.WANBlackhole)
		AddReportEntry("last pod Ready after kernel start", waitReadyHere(ctx, append(allPods(), serving...)...).String())
	}, NodeTimeout(4*time.Minute))

	It("get what they want of the API", func(ctx SpecContext) {
		Expect(environment(ctx, "zoo-secret")).To(ContainElements("PASSWORD=hunter2", "S_password=hunter2"))
		Expect(file(ctx, "zoo-secret", "/secret/password")).To(Equal("hunter2"))
		Expect(environment(ctx, "zoo-config")).To(And(ContainElements("SHAPE=round", "shape=round"), Not(ContainElement(HavePrefix("NONE=")))))
		Expect(file(ctx, "zoo-config", "/config/shape")).To(Equal("round"))
		Expect(environment(ctx, "zoo-downward")).To(ContainElements("NAME=zoo-downward", "NODE="+nodeName, "CPU=7"))
		address, err := kubectl(ctx, "get", "pod", "zoo-downward", "-o", "'jsonpath={.status.podIP}'")
		Expect(err).NotTo(HaveOccurred())
		Expect(environment(ctx, "zoo-downward")).To(ContainElement("IP=" + address))
		Expect(file(ctx, "zoo-downward", "/info/labels")).To(ContainSubstring(`app="zoo-downward"`))
		Expect(file(ctx, "zoo-token", "/mixed/shape")).To(Equal("round"))
		Expect(file(ctx, "zoo-token", "/mixed/password")).To(Equal("hunter2"))
	})

	It("get the tokens they had, for their own audience", func(ctx SpecContext) {
		Expect(claimsOf(file(ctx, "zoo-token", "/mixed/token")).Audience).To(Equal([]string{"vault"}))
		for path, at := range issued {
			token := claimsOf(shell(ctx, "cat "+path))
			// A token may have been renewed between the look and the cut, never after it.
			Expect(time.Unix(token.Issued, 0)).To(BeTemporally("<", node.Current().Zero), "%s, was issued %s", path, time.Unix(at, 0))
		}
	})

	It("find their data", func(ctx SpecContext) {
		Expect(file(ctx, "zoo-config", "/scratch/data")).To(Equal("kept"))
		Expect(file(ctx, "zoo-claim", "/claim/data")).To(Equal("claimed"))
	})

	It("have run as often as they should", func(ctx SpecContext) {
		for _, name := range serving {
			Expect(runs(ctx, strings.TrimSuffix(name, "-"+nodeName), "web")).To(Equal(2), "%s: once each boot", name)
		}
		Expect(runs(ctx, "zoo-init", "before")).To(Equal(2))
		Expect(runs(ctx, "zoo-init", "beside")).To(Equal(2))
		for name, phase := range map[string]string{
			"job-never": "Succeeded", "job-on-failure": "Succeeded", "job-failed": "Failed",
			"job-running": "Failed", // by the power cut
		} {
			Eventually(ctx, func() string {
				phase, _ := kubectl(ctx, "get", "pod", name, "-o", "'jsonpath={.status.phase}'")
				return phase
			}).WithTimeout(soon).WithPolling(time.Second).Should(Equal(phase), name)
			Consistently(ctx, func() int { return runs(ctx, name, "web") }).WithTimeout(2*time.Second).WithPolling(time.Second).Should(Equal(1), name)
		}
	})

	It("and kubelet were refused nothing", func() {
		var refused []string
		for line := range strings.Lines(wholeLog("kubelet.log")) {
			if strings.Contains(line, "rekindle-agent: ") {
				refused = append(refused, line)
			}
		}
		Expect(refused).To(BeEmpty())
	})

	It("can be looked after on kubelet's own port, by whom the API server allowed it", func(ctx SpecContext) {
		Expect(ask.operator.ask(ctx, askLogs)).To(Equal("200"))
		Expect(ask.scraper.ask(ctx, askMetrics)).To(Equal("200"))
		Expect(ask.operator.ask(ctx, askRun)).To(Equal("403"), "nobody has ever allowed that")
		Expect(ask.stranger.ask(ctx, askLogs)).To(Equal("403"))
		Expect(ask.nobody.ask(ctx, askLogs)).To(Equal("401"))
		Expect(asker{"-H", "'Authorization: Bearer x.y.z'"}.ask(ctx, askMetrics)).To(Equal("401"))
	})

	It("are in the API as they are, once the link is back, and none was made anew", func(ctx SpecContext) {
		_, err := kubectl(ctx, "get", "deployments")
		Expect(err).To(HaveOccurred(), "nothing on the node has these")

		Expect(node.RestoreWAN(ctx)).To(Succeed())
		back := time.Now()
		inStep(ctx)
		waitReady(ctx, serving...)
		Eventually(ctx, func(g Gomega) {
			after := upstreamPods(ctx)
			for name, was := range before {
				now := after[name]
				g.Expect(now.UID).To(Equal(was.UID), name)
				for i, container := range now.Status.ContainerStatuses {
					more := int32(1)
					if strings.HasPrefix(name, "job-") {
						more = 0
					}
					g.Expect(container.RestartCount).To(Equal(was.Status.ContainerStatuses[i].RestartCount+more), "%s/%s", name, container.Name)
				}
			}
			g.Expect(after["job-running"].Status.Phase).To(Equal(corev1.PodFailed))
			g.Expect(after["job-never"].Status.Phase).To(Equal(corev1.PodSucceeded))
		}).WithTimeout(soon).WithPolling(time.Second).Should(Succeed(), journal)

		By("each token is real again")
		for path := range issued {
			uid := strings.Split(path, "/")[5]
			Eventually(ctx, func(g Gomega) {
				token := claimsOf(shell(ctx, "cat "+path))
				g.Expect(time.Unix(token.Issued, 0)).To(BeTemporally(">=", back.Truncate(time.Second)))
				g.Expect(token.life(time.Now())).To(BeNumerically(">", 10*time.Minute))
				g.Expect(token.Kubernetes.Pod.UID).To(BeEquivalentTo(uid))
			}).WithTimeout(time.Until(back.Add(realToken))).WithPolling(time.Second).Should(Succeed(), "%s", path)
			AddReportEntry("real token after", time.Since(back).Round(time.Second).String()+" "+path)
		}
	}, SpecTimeout(4*time.Minute))

	It("has missed nothing that kubelet needs, and says what others have missed", func(ctx SpecContext) {
		missed := func(ctx context.Context) []v1alpha1.MissedResource { return nodeRecovery(ctx).Status.MissedResources }
		Eventually(ctx, missed).WithTimeout(soon).WithPolling(time.Second).
			Should(ContainElement(And(HaveField("Group", "apps"), HaveField("Resource", "deployments"), HaveField("Client", "kubectl"))), journal)
		Expect(missed(ctx)).NotTo(ContainElement(HaveField("Client", "kubelet")))
	}, SpecTimeout(2*time.Minute))
})
