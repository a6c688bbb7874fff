package gate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/edgenode"
)

// stage waits until the pods with the label stage are Ready.
func stage(name string, timeoutSeconds int32) v1alpha1.Stage {
	return v1alpha1.Stage{Name: name, WaitFor: v1alpha1.WaitForReady, TimeoutSeconds: timeoutSeconds, Pods: []v1alpha1.PodSelector{{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"stage": name}},
	}}}
}

// staged is a web pod of a stage.
func (e *edge) staged(name, stage string, args ...string) *corev1.Pod {
	pod := edgenode.WebPod(name, e.Name, args...)
	pod.Labels["stage"] = stage
	return pod
}

var recoveries ctrl.Client

// recoveryClient reads and writes NodeRecovery objects, whose definition it applies once.
func recoveryClient(ctx context.Context) ctrl.Client {
	GinkgoHelper()
	if recoveries != nil {
		return recoveries
	}
	apply(ctx, "../../../config/crd/bases/rekindle.edge_noderecoveries.yaml")
	Expect(v1alpha1.AddToScheme(scheme.Scheme)).To(Succeed())
	made, err := ctrl.New(shared.Admin(), ctrl.Options{Scheme: scheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
	recoveries = made
	return made
}

// order gives the node its stages, as the manager does, and waits until the agent has them.
func (e *edge) order(ctx context.Context, stages ...v1alpha1.Stage) {
	GinkgoHelper()
	c := recoveryClient(ctx)
	nrec := &v1alpha1.NodeRecovery{ObjectMeta: metav1.ObjectMeta{Name: e.Name}}
	Eventually(ctx, func() error {
		err := c.Get(ctx, ctrl.ObjectKeyFromObject(nrec), nrec)
		nrec.Spec = v1alpha1.NodeRecoverySpec{
			PolicyName: "order", PolicyGeneration: 1, Mode: v1alpha1.ModeEnforce, StartupOrdering: v1alpha1.StartupOrdering{Stages: stages},
		}
		if apierrors.IsNotFound(err) {
			return c.Create(ctx, nrec)
		}
		if err != nil {
			return err
		}
		return c.Update(ctx, nrec)
	}).WithTimeout(soon).WithPolling(poll).Should(Succeed())
	Eventually(ctx, func() (int64, error) {
		err := c.Get(ctx, ctrl.ObjectKeyFromObject(nrec), nrec)
		return nrec.Status.ObservedGeneration, err
	}).WithTimeout(soon).WithPolling(poll).Should(Equal(nrec.Generation), e.journal)
}

// endOrder takes the node's stages away.
func (e *edge) endOrder(ctx context.Context) {
	GinkgoHelper()
	err := recoveryClient(ctx).Delete(ctx, &v1alpha1.NodeRecovery{ObjectMeta: metav1.ObjectMeta{Name: e.Name}})
	Expect(ctrl.IgnoreNotFound(err)).To(Succeed())
}

// record waits for the record of the boot.
func (e *edge) record(ctx context.Context) v1alpha1.Recovery {
	GinkgoHelper()
	var found v1alpha1.Recovery
	Eventually(ctx, func() (string, error) {
		var nrec v1alpha1.NodeRecovery
		err := recoveryClient(ctx).Get(ctx, ctrl.ObjectKey{Name: e.Name}, &nrec)
		if err != nil || len(nrec.Status.Recoveries) == 0 {
			return "", err
		}
		found = nrec.Status.Recoveries[0]
		return found.BootID, nil
	}).WithTimeout(soon).WithPolling(poll).Should(Equal(e.Current().ID), e.journal)
	return found
}

// asked is containerd's line when kubelet's call for a sandbox has come to it.
var asked = regexp.MustCompile(`(?m)^time="([^"]+)" .*RunPodSandbox for name:\\"([^"\\]*)\\".*$`)

// begun are the times at which sandboxes of this boot were begun, by pod, as containerd's
// log has them.
func (e *edge) begun() map[string][]time.Duration {
	GinkgoHelper()
	times := map[string][]time.Duration{}
	for _, m := range asked.FindAllStringSubmatch(e.log("containerd.log"), -1) {
		if strings.Contains(m[0], "returns sandbox id") || strings.Contains(m[0], "failed, error") {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, m[1])
		Expect(err).NotTo(HaveOccurred())
		times[m[2]] = append(times[m[2]], e.Current().Since(at).Round(time.Millisecond))
	}
	return times
}

// inOrder wants every pod of a stage Ready, by kubelet's log, before the first sandbox of
// the next was begun, by containerd's.
func (e *edge) inOrder(stages ...[]string) {
	GinkgoHelper()
	begun := e.begun()
	witness, err := e.Current().Witness()
	Expect(err).NotTo(HaveOccurred())
	var before time.Duration
	for i, stage := range stages {
		var first, last time.Duration = time.Hour, 0
		for _, name := range stage {
			Expect(begun[name]).NotTo(BeEmpty(), "%s was never begun", name)
			first = min(first, begun[name][0])
			if ready, ok := witness.FirstReady("default/" + name); ok {
				last = max(last, e.Current().Since(ready).Round(time.Millisecond))
			}
		}
		say("stage %d: first sandbox begun %s, last pod Ready %s", i+1, first, last)
		Expect(first).To(BeNumerically(">", before), "stage %d was begun before stage %d was Ready; begun: %v", i+1, i, begun)
		before = last
	}
}

var _ = Describe("The start-up order of a node is that of its policy:", Ordered, ContinueOnFailure, func() {
	var e *edge
	first, second, third, rest := numbered("first", 2), numbered("second", 2), numbered("third", 2), numbered("rest", 2)
	pods := slices.Concat(first, second, third, rest)

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
		e.waitReady(ctx, 2*soon, pods...)
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
			took := e.waitReady(ctx, soon, pods...)
			AddReportEntry("last pod Ready after kernel start", took.String())
			e.inOrder(first, second, third, rest)
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
		e.hold(ctx, "first")
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
		took := e.waitReady(ctx, 3*soon, pods...)
		AddReportEntry("last pod Ready after kernel start", took.String())
		e.inOrder(first, second, third, rest)
	}, SpecTimeout(5*time.Minute))

	It("no pod fails for a network that comes late, and pods on the node's own start without it", func(ctx SpecContext) {
		const conf, plugin, up = "/etc/cni/net.d/10-pods.conflist", "/opt/cni/bin/late", "/run/network-up"
		script := `#!/bin/sh
config=$(cat)
if [ "$CNI_COMMAND" = ADD ] && ! [ -e ` + up + ` ]; then
	echo "{\"cniVersion\":\"1.0.0\",\"code\":11,\"msg\":\"the network is late\"}"
	exit 1
fi
echo "$config" | sed "s/\"type\":\"late\"/\"type\":\"bridge\"/" | exec /usr/lib/cni/bridge
`
		_, err := e.Exec(ctx, "sh", "-c", fmt.Sprintf("set -e; mkdir -p /opt/cni/bin; touch %s; echo '%s' > %s; chmod 755 %s; sed -i 's/\"bridge\",$/\"late\",/; s/\"type\": \"bridge\"/\"type\": \"late\"/' %s; sync", up, script, plugin, plugin, conf))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			_, err := e.Exec(ctx, "sed", "-i", `s/"late"/"bridge"/`, conf)
			Expect(err).NotTo(HaveOccurred())
		})
		host := e.staged("host", "none")
		host.Spec.HostNetwork = true
		host.Spec.Containers[0].Ports[0].HostPort = edgenode.WebPort
		e.create(ctx, host)
		e.order(ctx)
		e.settle(ctx)
		Expect(e.CutWAN(ctx, edgenode.WANBlackhole)).To(Succeed())
		e.powerCut(ctx)
		e.waitReady(ctx, soon, "host")
		Eventually(ctx, func() string { return e.log("containerd.log") }).WithTimeout(soon).WithPolling(poll).Should(ContainSubstring("the network is late"), e.journal)
		time.Sleep(5 * time.Second)
		Expect(e.ready(pods...)).To(BeZero())
		_, err = e.Exec(ctx, "touch", up)
		Expect(err).NotTo(HaveOccurred())
		came := e.Current().Uptime()
		took := e.waitReady(ctx, soon, pods...)
		AddReportEntry("last pod Ready after the network came", (took - came).String())
		Expect(e.log("kubelet.log")).NotTo(ContainSubstring("the network is late"), "a call has failed")
	}, SpecTimeout(3*time.Minute))

	DescribeTable("it lets a held pod go at once that is deleted", func(ctx SpecContext, wan edgenode.WANMode) {
		e.hold(ctx, "first")
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
})

// hold makes a pod that runs, ends, and is run again, so that its stage waits. The spec's
// end takes it away.
func (e *edge) hold(ctx context.Context, stage string) {
	GinkgoHelper()
	_, err := client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, e.staged("loop", stage, "-listen=nowhere"), metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		err := client.CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, "loop", metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))})
		Expect(ctrl.IgnoreNotFound(err)).To(Succeed())
	})
}
