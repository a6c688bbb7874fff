package gate

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/edgenode"
)

var _ = Describe("The start-up order of a node is that of its policy:", Ordered, ContinueOnFailure, func() {
	var e *edge
	first, second, third, rest := numbered("first", 2), numbered("second", 2), numbered("third", 2), numbered("rest", 2)
	pods := slices.Concat(first, second, third, rest)
	// One of the second stage is on the node's own network.
	secondAndHost, everyone := append(slices.Clone(second), "host"), append(slices.Clone(pods), "host")

	BeforeAll(func(ctx SpecContext) {
		recoveryClient(ctx)
		e = newEdge(ctx, "ordered", true, nil)
		DeferCleanup(func(ctx SpecContext) { e.endOrder(ctx) })
		// The oldest pods come last: kubelet begins with them.
		for _, s := range []struct {
			stage string
			names []string
		}{{"none", rest}, {"third", third}, {"second", second}, {"first", first}} {
			for _, name := range s.names {
				_, err := client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, e.staged(name, s.stage), metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
			}
			time.Sleep(1100 * time.Millisecond) // an age is in seconds
		}
		e.create(ctx, e.hostPod("host", "second"))
		e.waitReady(ctx, 2*soon, everyone...)
	}, NodeTimeout(4*time.Minute))

	AfterEach(func(ctx SpecContext) { Expect(e.RestoreWAN(ctx)).To(Succeed()) })

	for _, wan := range []edgenode.WANMode{edgenode.WANBlackhole, ""} {
		It(fmt.Sprintf("stage by stage, with the uplink %q", wan), func(ctx SpecContext) {
			e.order(ctx, stage("first", 60), stage("second", 60), stage("third", 60))
			e.settle(ctx)
			if wan != "" {
				Expect(e.CutWAN(ctx, wan)).To(Succeed())
			}
			e.powerCut(ctx)
			took := e.waitReady(ctx, soon, everyone...)
			AddReportEntry("last pod Ready after kernel start", took.String())
			e.inOrder(first, secondAndHost, third, rest)
			Expect(e.RestoreWAN(ctx)).To(Succeed())
			record := e.record(ctx)
			Expect(record.Result).To(Equal(v1alpha1.RecoveryComplete))
			var names []string
			for _, s := range record.Stages {
				names = append(names, s.Name+" "+string(s.Result))
			}
			Expect(names).To(Equal([]string{"Critical Ready", "first Ready", "second Ready", "third Ready", "Rest "}), "%+v", record.Stages)
		}, SpecTimeout(3*time.Minute))
	}

	It("it goes on at a stage's timeout, and the record says which pod held it", func(ctx SpecContext) {
		e.hold(ctx)
		e.order(ctx, stage("first", 15), stage("second", 60))
		e.settle(ctx)
		Expect(e.CutWAN(ctx, edgenode.WANBlackhole)).To(Succeed())
		e.powerCut(ctx)
		e.waitReady(ctx, 2*soon, pods...)
		begun := e.begun()
		opened := min(begun[first[0]][0], begun[first[1]][0], begun["loop"][0])
		Expect(min(begun[second[0]][0], begun[second[1]][0])).To(BeNumerically("~", opened+15*time.Second, 2*time.Second), "%v", begun)
		Expect(e.RestoreWAN(ctx)).To(Succeed())
		record := e.record(ctx)
		Expect(record.Stages).To(ContainElement(And(
			HaveField("Name", "first"), HaveField("Result", v1alpha1.StageTimedOut), HaveField("WaitedFor", "default/loop"))), "%+v", record.Stages)
	}, SpecTimeout(4*time.Minute))

	It("it is kept by an agent that is killed ten times", func(ctx SpecContext) {
		e.order(ctx, stage("first", 120), stage("second", 120), stage("third", 120))
		e.settle(ctx)
		Expect(e.CutWAN(ctx, edgenode.WANBlackhole)).To(Succeed())
		e.powerCut(ctx)
		var pauses []string
		for range 10 {
			pauses = append(pauses, fmt.Sprintf("%.2f", 0.3+2.5*rand.Float64()))
		}
		say("pauses between kills: %v", pauses)
		Eventually(ctx, func() error {
			_, err := e.Exec(ctx, "sh", "-c", fmt.Sprintf("systemd-run --quiet --unit=killer sh -c 'for p in %s; do sleep $p; systemctl kill -s KILL rekindle-agent.service; done'", strings.Join(pauses, " ")))
			return err
		}).WithTimeout(soon).WithPolling(poll).Should(Succeed())
		took := e.waitReady(ctx, 3*soon, everyone...)
		AddReportEntry("last pod Ready after kernel start", took.String())
		e.inOrder(first, secondAndHost, third, rest)
	}, SpecTimeout(5*time.Minute))

	It("no pod fails for a network that comes late, and pods on the node's own start without it", func(ctx SpecContext) {
		up := e.lateNetwork(ctx)
		e.order(ctx)
		e.settle(ctx)
		Expect(e.CutWAN(ctx, edgenode.WANBlackhole)).To(Succeed())
		e.powerCut(ctx)
		e.waitReady(ctx, soon, "host")
		Eventually(ctx, func() string { return e.log("containerd.log") }).WithTimeout(soon).WithPolling(poll).Should(ContainSubstring("the network is late"), e.journal)
		time.Sleep(5 * time.Second)
		Expect(e.ready(pods...)).To(BeZero())
		up(ctx)
		came := e.Current().Uptime()
		took := e.waitReady(ctx, soon, pods...)
		AddReportEntry("last pod Ready after the network came", (took - came).String())
		Expect(e.log("kubelet.log")).NotTo(ContainSubstring("the network is late"), "a call has failed")
	}, SpecTimeout(3*time.Minute))

	DescribeTable("it lets a held pod go at once that is deleted", func(ctx SpecContext, wan edgenode.WANMode) {
		e.hold(ctx)
		e.create(ctx, e.staged("held", "second"))
		e.order(ctx, stage("first", 30), stage("second", 60))
		e.settle(ctx)
		if wan != "" {
			Expect(e.CutWAN(ctx, wan)).To(Succeed())
		}
		e.powerCut(ctx)
		e.waitReady(ctx, soon, first...)
		Expect(e.begun()).NotTo(HaveKey("held"))
		// Kubelet waits for its sandbox.
		Expect(client.CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, "held", metav1.DeleteOptions{})).To(Succeed())
		Expect(e.RestoreWAN(ctx)).To(Succeed())
		known := time.Now()
		Eventually(ctx, func() bool {
			_, err := client.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, "held", metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		}).WithTimeout(25*time.Second).WithPolling(poll).Should(BeTrue(), e.journal)
		AddReportEntry("gone after", time.Since(known).Round(time.Millisecond).String())
		Expect(e.begun()).NotTo(HaveKey(second[0]), "the stage is over, so the pod was not held when it was deleted")
		e.waitReady(ctx, 2*soon, pods...)
		Expect(e.begun()).NotTo(HaveKey("held"), "a sandbox was made for a pod that is gone")
	},
		Entry("while the link is up", edgenode.WANMode(""), SpecTimeout(4*time.Minute)),
		Entry("while the node was cut off", edgenode.WANRefused, SpecTimeout(4*time.Minute)),
	)
	It("it lets a held pod go whose time is over", func(ctx SpecContext) {
		e.hold(ctx)
		brief := e.staged("brief", "second")
		brief.Spec.ActiveDeadlineSeconds = ptr.To(int64(75))
		e.create(ctx, brief)
		e.order(ctx, stage("first", 180), stage("second", 60))
		e.settle(ctx)
		e.powerCut(ctx)
		e.waitReady(ctx, soon, first...)
		Expect(e.begun()).NotTo(HaveKey(brief.Name))
		var failed *corev1.Pod
		Eventually(ctx, func() (corev1.PodPhase, error) {
			var err error
			failed, err = client.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, brief.Name, metav1.GetOptions{})
			if err != nil {
				return "", err
			}
			return failed.Status.Phase, nil
		}).WithTimeout(90*time.Second).WithPolling(poll).Should(Equal(corev1.PodFailed), e.journal)
		Expect(failed.Status.Reason).To(Equal("DeadlineExceeded"))
		AddReportEntry("failed after its start", time.Since(failed.Status.StartTime.Time).Round(time.Second).String())
		Expect(e.begun()).NotTo(HaveKey(second[0]), "the stage is over, so the pod was not held until then")
		Expect(client.CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, "loop", metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))})).To(Succeed())
		e.waitReady(ctx, 2*soon, pods...)
		Expect(e.begun()).NotTo(HaveKey(brief.Name), "a sandbox was made for a pod whose time was over")
	}, SpecTimeout(5*time.Minute))

	It("it lets a held static pod go whose manifest is another", func(ctx SpecContext) {
		const path = "/etc/kubernetes/manifests/static.yaml"
		write := func(version string) {
			GinkgoHelper()
			pod := edgenode.WebPod("static", "")
			manifest, err := json.Marshal(map[string]any{
				"apiVersion": "v1", "kind": "Pod",
				"metadata": map[string]any{"name": pod.Name, "namespace": pod.Namespace, "annotations": map[string]string{"version": version}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": pod.Spec.Containers[0].Image, "imagePullPolicy": "IfNotPresent"}}},
			})
			Expect(err).NotTo(HaveOccurred())
			_, err = e.Exec(ctx, "sh", "-c", fmt.Sprintf("echo '%s' > /run/static.yaml && mv /run/static.yaml %s && sync", manifest, path))
			Expect(err).NotTo(HaveOccurred())
		}
		write("one")
		DeferCleanup(func(ctx SpecContext) { _, _ = e.Exec(ctx, "rm", "-f", path) })
		name := "static-" + e.Name
		Eventually(ctx, e.begun).WithTimeout(soon).WithPolling(poll).Should(HaveKey(name), e.journal)
		e.hold(ctx)
		late := stage("second", 60)
		late.Pods = append(late.Pods, v1alpha1.PodSelector{Source: v1alpha1.PodSourceStatic})
		e.order(ctx, stage("first", 30), late)
		e.settle(ctx)
		Expect(e.CutWAN(ctx, edgenode.WANBlackhole)).To(Succeed())
		e.powerCut(ctx)
		e.waitReady(ctx, soon, first...)
		Expect(e.begun()).NotTo(HaveKey(name))
		write("two")
		e.waitReady(ctx, 2*soon, pods...)
		Eventually(ctx, func() []time.Duration { return e.begun()[name] }).WithTimeout(20*time.Second).WithPolling(poll).Should(HaveLen(1), e.journal)
	}, SpecTimeout(4*time.Minute))
})
