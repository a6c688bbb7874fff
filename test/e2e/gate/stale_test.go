package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"

	"rekindle.edge/test/edgenode"
	"rekindle.edge/test/images"
)

const (
	// garbage is kubelet's collection of it, a minute apart, and then some.
	garbage  = 150 * time.Second
	hostPort = 8099
)

// leases are the ids of host-local's leases, by address.
func (e *edge) leases(ctx context.Context) map[string]string {
	GinkgoHelper()
	output, err := e.Exec(ctx, "bash", "-c", `cd /var/lib/cni/networks/pods && for f in [0-9]*; do echo "$f $(head -c 64 $f | tr -d '\0')"; done`)
	Expect(err).NotTo(HaveOccurred())
	leases := map[string]string{}
	for line := range strings.Lines(output) {
		address, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		leases[address] = id
	}
	return leases
}

// left is what a node has of sandboxes that are no more.
type left struct {
	Sandboxes, Containers, Snapshots int
	// Leases and Results of the network plugins belong to no sandbox that is ready.
	Leases, Results []string
}

func (e *edge) left(ctx context.Context) left {
	GinkgoHelper()
	sandboxes := e.sandboxes(ctx)
	var l left
	for _, ready := range sandboxes {
		if !ready {
			l.Sandboxes++
		}
	}
	for address, id := range e.leases(ctx) {
		if !sandboxes[id] {
			l.Leases = append(l.Leases, address+" "+id)
		}
	}
	results, err := e.Exec(ctx, "ls", "/var/lib/cni/results")
	Expect(err).NotTo(HaveOccurred())
	for name := range strings.FieldsSeq(results) {
		if !slices.ContainsFunc(strings.Split(name, "-"), func(part string) bool { return sandboxes[part] }) {
			l.Results = append(l.Results, name)
		}
	}
	l.Containers = e.count(ctx, "ctr", "-n", "k8s.io", "containers", "list", "-q")
	l.Snapshots = e.count(ctx, "ctr", "-n", "k8s.io", "snapshots", "list")
	return l
}

func (e *edge) count(ctx context.Context, command ...string) int {
	GinkgoHelper()
	output, err := e.Exec(ctx, command...)
	Expect(err).NotTo(HaveOccurred())
	return strings.Count(output, "\n")
}

// marks counts the sandboxes of earlier boots by what the agent keeps of each.
func (e *edge) marks(ctx context.Context) map[string]int {
	GinkgoHelper()
	output, err := e.Exec(ctx, "bash", "-c", "cat /run/rekindle/stale-sandboxes.*.json 2>/dev/null || true")
	Expect(err).NotTo(HaveOccurred())
	var kept struct{ Sandboxes map[string]string }
	counts := map[string]int{}
	if output == "" {
		return counts
	}
	Expect(json.Unmarshal([]byte(output), &kept)).To(Succeed())
	for _, mark := range kept.Sandboxes {
		counts[mark]++
	}
	return counts
}

// runsPod ends at once; each run adds a line to a file on the node.
func runsPod(name, node string, policy corev1.RestartPolicy) *corev1.Pod {
	pod := edgenode.WebPod(name, node, "-exit=0", "-runs=/runs/"+name)
	pod.Spec.RestartPolicy = policy
	pod.Spec.Containers[0].ReadinessProbe = nil
	mountRuns(pod, &pod.Spec.Containers[0])
	return pod
}

// steppedPod has a first step, of which each run adds a line.
func steppedPod(name, node string) *corev1.Pod {
	pod := edgenode.WebPod(name, node)
	step := corev1.Container{Name: "step", Image: images.Web, Args: []string{"-exit=0", "-runs=/runs/" + name}}
	mountRuns(pod, &step)
	pod.Spec.InitContainers = []corev1.Container{step}
	return pod
}

func mountRuns(pod *corev1.Pod, container *corev1.Container) {
	kind := corev1.HostPathDirectoryOrCreate
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "runs", VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/runs", Type: &kind},
	}})
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "runs", MountPath: "/runs"})
}

func portPod(name, node string) *corev1.Pod {
	pod := edgenode.WebPod(name, node)
	pod.Spec.Containers[0].Ports[0].HostPort = hostPort
	return pod
}

// answers says whether the pod with a port on the node answers there.
func (e *edge) answers(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s:%d%s", e.IP(), hostPort, edgenode.ReadyPath), nil)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

func (e *edge) runs(ctx context.Context, name string) int {
	GinkgoHelper()
	return e.count(ctx, "cat", "/var/lib/runs/"+name)
}

// waitCleanUp waits until all stops that were acknowledged are carried out.
func (e *edge) waitCleanUp(ctx context.Context, within time.Duration) {
	GinkgoHelper()
	Eventually(ctx, func() map[string]int { return e.marks(ctx) }).WithTimeout(within).WithPolling(time.Second).
		ShouldNot(HaveKey("Acknowledged"), e.journal)
}

var _ = Describe("Sandboxes of earlier boots", func() {
	It("are out of the way of a recovery, and no more of them is left than on a plain node", func(ctx SpecContext) {
		with, plain := newEdge(ctx, "stale-1", true, nil), newEdge(ctx, "plain-1", false, nil)
		var serving []string
		for _, e := range []*edge{with, plain} {
			name := func(kind string) string { return kind + "-" + e.Name }
			serving = append(numbered("web", 4), "stepped", "port")
			pods := []*corev1.Pod{
				steppedPod(name("stepped"), e.Name), portPod(name("port"), e.Name),
				runsPod(name("onfailure"), e.Name, corev1.RestartPolicyOnFailure), runsPod(name("never"), e.Name, corev1.RestartPolicyNever),
			}
			for _, web := range numbered("web", 4) {
				pods = append(pods, edgenode.WebPod(name(web), e.Name))
			}
			e.create(ctx, pods...)
			e.settle(ctx)
		}
		named := func(e *edge) []string {
			var names []string
			for _, kind := range serving {
				names = append(names, kind+"-"+e.Name)
			}
			return names
		}

		deferred := 0
		for range 3 {
			Expect(with.CutWAN(ctx, edgenode.WANBlackhole)).To(Succeed())
			with.powerCut(ctx)
			took := with.waitReady(ctx, soon, named(with)...)
			deferred += with.marks(ctx)["Acknowledged"]
			plain.powerCut(ctx)
			AddReportEntry("last pod Ready after kernel start, with and without Rekindle", fmt.Sprint(took, " ", plain.waitReady(ctx, soon, named(plain)...)))
		}
		Expect(deferred).To(BeNumerically(">", 0), "no stop waited for the recovery")
		Expect(with.RestoreWAN(ctx)).To(Succeed())
		Eventually(ctx, with.answers).WithArguments(ctx).WithTimeout(soon).WithPolling(poll).Should(Succeed())

		with.waitCleanUp(ctx, soon)
		Expect(with.answers(ctx)).To(Succeed(), "the stop of its predecessor has taken a pod's port away")
		Eventually(ctx, func(g Gomega) {
			ours, theirs := with.left(ctx), plain.left(ctx)
			g.Expect(ours.Leases).To(BeEmpty())
			g.Expect(ours.Results).To(BeEmpty())
			g.Expect(ours.Sandboxes).To(BeNumerically("<=", theirs.Sandboxes), "%+v, a plain node has %+v", ours, theirs)
			g.Expect(ours.Containers).To(BeNumerically("<=", theirs.Containers), "%+v, a plain node has %+v", ours, theirs)
			g.Expect(ours.Snapshots).To(BeNumerically("<=", theirs.Snapshots), "%+v, a plain node has %+v", ours, theirs)
		}).WithTimeout(garbage).WithPolling(5*time.Second).Should(Succeed(), with.journal)
		AddReportEntry("left with and without Rekindle", fmt.Sprintf("%+v %+v", with.left(ctx), plain.left(ctx)))
		Expect(with.answers(ctx)).To(Succeed())
		for _, kind := range []string{"onfailure", "never"} {
			Expect(with.runs(ctx, kind+"-"+with.Name)).To(Equal(1), "a pod that had finished has run again")
		}
		Expect(with.runs(ctx, "stepped-"+with.Name)).To(Equal(plain.runs(ctx, "stepped-"+plain.Name)), "first steps ran more or less often than on a plain node")
	}, SpecTimeout(10*time.Minute))

	It("are stopped after all if the agent is killed in between", func(ctx SpecContext) {
		e := newEdge(ctx, "stale-2", true, nil)
		names := numbered("kill", 8)
		e.create(ctx, webPods(e.Name, names...)...)
		e.settle(ctx)
		Expect(e.CutWAN(ctx, edgenode.WANBlackhole)).To(Succeed())
		e.powerCut(ctx)
		Eventually(ctx, func() int { return e.marks(ctx)["Acknowledged"] }).WithTimeout(soon).WithPolling(50*time.Millisecond).
			Should(BeNumerically(">=", 4), e.journal)
		Expect(e.Systemctl(ctx, "kill", "--kill-whom=main", "--signal=KILL", "rekindle-agent.service")).To(Succeed())
		owed := e.marks(ctx)
		Expect(owed["Acknowledged"]).To(BeNumerically(">", 0), "%v", owed)
		e.waitReady(ctx, soon, names...)
		e.waitCleanUp(ctx, soon)
		Expect(e.left(ctx).Leases).To(BeEmpty())
		Expect(e.left(ctx).Results).To(BeEmpty())
	}, SpecTimeout(5*time.Minute))

	for _, c := range []struct {
		pods, bits int
	}{{12, 27}, {110, 24}} {
		It(fmt.Sprintf("leave %d pods on a /%d their addresses, though the power goes three times in mid-recovery", c.pods, c.bits), func(ctx SpecContext) {
			if c.pods > 50 {
				full()
			}
			e := newEdge(ctx, fmt.Sprintf("range-%d", c.bits), true, func(root string) error {
				path := filepath.Join(root, "/etc/cni/net.d/10-pods.conflist")
				data, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				return os.WriteFile(path, []byte(strings.Replace(string(data), "/24", fmt.Sprintf("/%d", c.bits), 1)), 0o600)
			})
			names := numbered("range", c.pods)
			e.create(ctx, webPods(e.Name, names...)...)
			e.settle(ctx)
			Expect(e.CutWAN(ctx, edgenode.WANBlackhole)).To(Succeed())
			e.powerCut(ctx)
			for range 3 {
				Eventually(ctx, func() int { return e.ready(names...) }).WithTimeout(2*soon).WithPolling(poll).
					Should(BeNumerically(">=", c.pods/3), e.journal)
				say("the power goes; %d pods are Ready, %d sandboxes are there, %d addresses are held, %v", e.ready(names...), len(e.sandboxes(ctx)), len(e.leases(ctx)), e.marks(ctx))
				e.powerCut(ctx)
			}
			took := e.waitReady(ctx, time.Duration(c.pods)*3*time.Second+soon, names...)
			AddReportEntry("last pod Ready after kernel start", took.String())
			Expect(e.log("containerd.log")).NotTo(ContainSubstring("no IP addresses available"))
			say("all are Ready; %d sandboxes are there, %d addresses are held, %v", len(e.sandboxes(ctx)), len(e.leases(ctx)), e.marks(ctx))
			e.waitCleanUp(ctx, time.Duration(c.pods)*5*time.Second+soon)
			Eventually(ctx, func() left { return e.left(ctx) }).WithTimeout(soon).WithPolling(time.Second).Should(HaveField("Leases", BeEmpty()), e.journal)
			Expect(e.leases(ctx)).To(HaveLen(c.pods))
		}, SpecTimeout(time.Duration(c.pods/10)*3*time.Minute+5*time.Minute))
	}
})
