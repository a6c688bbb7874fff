package gate

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/edgenode"
	"rekindle.edge/test/scenario"
)

const (
	gateSocket = "/run/rekindle/cri.sock"
	// long is the timeout of a stage that nobody may be seen to wait for.
	long = 600
	// unheld is long enough for kubelet to start a pod after a restart of its own, and much
	// less than long.
	unheld = 45 * time.Second
)

// kubelet's arguments, of the process that runs.
func (e *edge) kubelet(ctx context.Context) (string, error) {
	return e.Exec(ctx, "sh", "-c", "tr '\\0' ' ' < /proc/$(systemctl show -P MainPID kubelet.service)/cmdline")
}

// running are the ids of containers that run, by pod.
func (e *edge) running(ctx context.Context) map[string]string {
	GinkgoHelper()
	connection, err := e.CRI()
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = connection.Close() }()
	list, err := runtimeapi.NewRuntimeServiceClient(connection).ListContainers(ctx, &runtimeapi.ListContainersRequest{
		Filter: &runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}},
	})
	Expect(err).NotTo(HaveOccurred())
	ids := map[string]string{}
	for _, c := range list.GetContainers() {
		ids[c.GetLabels()["io.kubernetes.pod.name"]] = c.GetId()
	}
	return ids
}

// loseSandbox stops a pod's sandbox, as a crash does.
func (e *edge) loseSandbox(ctx context.Context, pod string) {
	GinkgoHelper()
	connection, err := e.CRI()
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = connection.Close() }()
	runtime := runtimeapi.NewRuntimeServiceClient(connection)
	list, err := runtime.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{
		LabelSelector: map[string]string{"io.kubernetes.pod.name": pod},
		State:         &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_READY},
	}})
	Expect(err).NotTo(HaveOccurred())
	Expect(list.GetItems()).To(HaveLen(1), pod)
	_, err = runtime.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: list.GetItems()[0].GetId()})
	Expect(err).NotTo(HaveOccurred())
}

var _ = Describe("A node whose first stage is never Ready", Ordered, ContinueOnFailure, func() {
	var e *edge
	pods := []string{"first-0", "second-0", "second-1"}

	BeforeAll(func(ctx SpecContext) {
		recoveryClient(ctx)
		// Kubelet gives a call for a sandbox twice that time.
		e = newEdge(ctx, "life", true, appendTo("/var/lib/kubelet/config.yaml", "runtimeRequestTimeout: 15s\n"))
		DeferCleanup(func(ctx SpecContext) { e.endOrder(ctx) })
		e.create(ctx, e.staged("first-0", "first"), e.staged("second-0", "second"), e.staged("second-1", "second"), e.hostPod("host", "none"))
		e.hold(ctx)
	}, NodeTimeout(4*time.Minute))

	It("starts its pods as kubelet asks in mode Observe, though the gate is there", func(ctx SpecContext) {
		e.policy(ctx, v1alpha1.ModeObserve, stage("first", long), stage("second", long))
		e.settle(ctx)
		e.powerCut(ctx)
		took := e.waitReady(ctx, soon, append(pods, "host")...)
		AddReportEntry("last pod Ready after kernel start", took.String())
		Expect(e.kubelet(ctx)).NotTo(ContainSubstring("/run/rekindle"), "kubelet is wired")
		Expect(e.marks(ctx)).NotTo(HaveKey("Acknowledged"))
		record := e.record(ctx)
		Expect(record.Result).To(Equal(v1alpha1.RecoveryComplete))
		Expect(record.Stages).To(BeEmpty(), "stages were opened")

		connection, err := e.Dial(gateSocket)
		Expect(err).NotTo(HaveOccurred())
		defer func() { _ = connection.Close() }()
		version, err := runtimeapi.NewRuntimeServiceClient(connection).Version(ctx, &runtimeapi.VersionRequest{})
		Expect(err).NotTo(HaveOccurred())
		Expect(version.GetRuntimeName()).To(Equal("containerd"))
	}, SpecTimeout(3*time.Minute))

	It("opens the stage early for a pod that brings the network, which no stage names", func(ctx SpecContext) {
		comes := e.lateNetwork(ctx)
		e.order(ctx, stage("first", long), stage("second", long))
		e.settle(ctx)
		e.powerCut(ctx)
		// The pod on the node's own network does what a daemon of the network does.
		Eventually(ctx, e.begun).WithTimeout(2*soon).WithPolling(poll).Should(HaveKey("host"), e.journal)
		begun := e.begun()
		Expect(begun).To(HaveKey("first-0"), e.journal)
		waited := begun["host"][0] - begun["first-0"][0]
		AddReportEntry("the pod that brings the network was held for", waited.String())
		Expect(waited).To(BeNumerically(">", 15*time.Second), "it was not held: %v", begun)
		Expect(e.ready(pods...)).To(BeZero())
		comes(ctx)
		took := e.waitReady(ctx, soon, append(pods, "host")...)
		AddReportEntry("last pod Ready after kernel start", took.String())
		record := e.record(ctx)
		Expect(record.Stages).To(ContainElement(And(
			HaveField("Name", "first"), HaveField("Result", v1alpha1.StageEarly), HaveField("WaitedFor", BeElementOf("default/first-0", "default/loop")))), "%+v", record.Stages)
	}, SpecTimeout(4*time.Minute))

	It("answers the calls that it holds before kubelet gives them up, and no pod is late for that", func(ctx SpecContext) {
		e.order(ctx, stage("first", 60), stage("second", long))
		e.settle(ctx)
		Expect(e.CutWAN(ctx, edgenode.WANBlackhole)).To(Succeed())
		e.powerCut(ctx)
		took := e.waitReady(ctx, 3*soon, append(pods, "host")...)
		AddReportEntry("last pod Ready after kernel start", took.String())
		begun := e.begun()
		opened := min(begun["first-0"][0], begun["loop"][0])
		for _, name := range []string{"second-0", "second-1"} {
			Expect(begun[name]).To(HaveLen(1))
			Expect(begun[name][0]).To(BeNumerically("~", opened+60*time.Second, 3*time.Second), "%s: %v", name, begun)
		}
		Expect(e.log("kubelet.log")).To(And(
			ContainSubstring("the pod waits for stage first"), ContainSubstring("network is not ready"), Not(MatchRegexp(`RunPodSandbox.*DeadlineExceeded`))))
		Expect(e.RestoreWAN(ctx)).To(Succeed())
	}, SpecTimeout(5*time.Minute))

	DescribeTable("holds nobody afterwards when only a part of it is restarted:", func(ctx SpecContext, unit string) {
		e.order(ctx, stage("first", long), stage("second", long))
		e.record(ctx) // the recovery of this boot is over
		kubelet, err := e.kubelet(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(kubelet).To(ContainSubstring(gateSocket))
		was := e.running(ctx)
		Expect(was).To(And(HaveKey("second-0"), HaveKey("host")))
		sandboxes := len(e.begun()["second-1"])

		Expect(e.Systemctl(ctx, "restart", unit)).To(Succeed())
		Expect(e.WaitRuntime(ctx)).To(Succeed())
		e.loseSandbox(ctx, "second-1")
		since := time.Now()
		fresh := "fresh-" + strings.TrimSuffix(unit, ".service")
		_, err = client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, e.staged(fresh, "second"), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, func(g Gomega) {
			g.Expect(e.begun()).To(HaveKey(fresh))
			g.Expect(len(e.begun()["second-1"])).To(BeNumerically(">", sandboxes))
		}).WithTimeout(unheld).WithPolling(poll).Should(Succeed(), e.journal)
		AddReportEntry("a new pod and one that had lost its sandbox were begun after", time.Since(since).Round(100*time.Millisecond).String())
		e.waitReady(ctx, soon, fresh)
		now := e.running(ctx)
		for _, name := range []string{"first-0", "second-0", "host"} {
			Expect(now[name]).To(Equal(was[name]), "%s was restarted", name)
		}
		Eventually(ctx, func(g Gomega) {
			pod, err := client.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, "second-1", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(scenario.Ready(pod)).To(BeTrue())
		}).WithTimeout(soon).WithPolling(poll).Should(Succeed(), e.journal)
	},
		Entry("kubelet", "kubelet.service", SpecTimeout(4*time.Minute)),
		Entry("the container runtime", "containerd.service", SpecTimeout(4*time.Minute)),
		Entry("the agent", "rekindle-agent.service", SpecTimeout(4*time.Minute)),
	)
})
