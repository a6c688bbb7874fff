package gate

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"rekindle.edge/test/edgenode"
	"rekindle.edge/test/scenario/spec"
)

// proxyThroughAgent has the node's kube-proxy ask the local API, so that it knows services
// while the node is cut off.
func (e *edge) proxyThroughAgent(ctx context.Context) {
	GinkgoHelper()
	spec.ProxyThroughAgent(ctx, client, e.Node)
}

// starts is how often containers of each pod were started in its sandbox of this boot.
func (e *edge) starts(ctx context.Context, names ...string) map[string]int {
	GinkgoHelper()
	connection, err := e.CRI()
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = connection.Close() }()
	runtime := runtimeapi.NewRuntimeServiceClient(connection)
	sandboxes, err := runtime.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	Expect(err).NotTo(HaveOccurred())
	live := map[string]string{}
	for _, s := range sandboxes.GetItems() {
		if s.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY && slices.Contains(names, s.GetMetadata().GetName()) {
			live[s.GetId()] = s.GetMetadata().GetName()
		}
	}
	containers, err := runtime.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	Expect(err).NotTo(HaveOccurred())
	// Kubelet keeps one dead container only, but numbers them.
	first, last := map[string]uint32{}, map[string]uint32{}
	for _, c := range containers.GetContainers() {
		name, ok := live[c.GetPodSandboxId()]
		if !ok {
			continue
		}
		attempt := c.GetMetadata().GetAttempt()
		if known, ok := first[name]; !ok || attempt < known {
			first[name] = attempt
		}
		last[name] = max(last[name], attempt)
	}
	runs := map[string]int{}
	for name := range first {
		runs[name] = int(last[name]-first[name]) + 1
	}
	return runs
}

var _ = Describe("Pods that end when their service does not answer", func() {
	It("never do after a restart that is cut off, if the service is in a stage before them", func(ctx SpecContext) {
		recoveryClient(ctx)
		e := newEdge(ctx, "dependent", true, nil, func(o *edgenode.Options) { o.KubeProxy = true })
		DeferCleanup(func(ctx SpecContext) { e.endOrder(ctx) })
		e.proxyThroughAgent(ctx)
		url := spec.Service(ctx, client, "db", "db")
		dependents := numbered("dependent", 8)
		var pods []*corev1.Pod
		for _, name := range dependents {
			pods = append(pods, e.staged(name, "apps", "-needs="+url))
		}
		e.create(ctx, e.staged("db", "db", "-ready-after=3s"))
		Eventually(ctx, func() error {
			_, err := e.Exec(ctx, "curl", "-sf", "--max-time", "2", "-o", "/dev/null", url)
			return err
		}).WithTimeout(soon).WithPolling(poll).Should(Succeed(), e.journal)
		e.create(ctx, pods...)

		By("without stages")
		e.order(ctx)
		e.settle(ctx)
		Expect(e.CutWAN(ctx, edgenode.WANBlackhole)).To(Succeed())
		e.powerCut(ctx)
		e.waitReady(ctx, 2*soon, append(dependents, "db")...)
		plain := e.starts(ctx, dependents...)
		Expect(plain).To(ContainElement(BeNumerically(">", 1)), "they do not depend on anything")
		AddReportEntry("starts without stages", fmt.Sprint(plain))

		By("with the service in a stage of its own")
		Expect(e.RestoreWAN(ctx)).To(Succeed())
		e.order(ctx, stage("db", 60))
		e.settle(ctx)
		Expect(e.CutWAN(ctx, edgenode.WANBlackhole)).To(Succeed())
		e.powerCut(ctx)
		took := e.waitReady(ctx, 2*soon, append(dependents, "db")...)
		AddReportEntry("last pod Ready after kernel start", took.String())
		for name, runs := range e.starts(ctx, dependents...) {
			Expect(runs).To(Equal(1), "%s was restarted", name)
		}
		Expect(e.starts(ctx, dependents...)).To(HaveLen(len(dependents)))
		Expect(e.RestoreWAN(ctx)).To(Succeed())
	}, SpecTimeout(6*time.Minute))
})
