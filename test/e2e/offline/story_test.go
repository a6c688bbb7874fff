package offline

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/test/edgenode"
	"rekindle.edge/test/scenario"
)

const pem = "/var/lib/kubelet/pki/kubelet-client-current.pem"

// kubectl runs on the node against the local API with the node's certificate, and gives all
// that it prints.
func kubectl(ctx context.Context, args ...string) (string, error) {
	line := append([]string{
		"timeout", "20", "kubectl", "--server=https://127.0.0.1:7443", "--certificate-authority=/run/rekindle/pki/ca.crt",
		"--client-certificate=" + pem, "--client-key=" + pem,
	}, args...)
	return node.Exec(ctx, "sh", "-c", strings.Join(line, " ")+" 2>&1")
}

var _ = Describe("While a node is cut off", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		powerCut(ctx, edgenode.WANBlackhole)
		waitReadyHere(ctx, allPods()...)
	})

	DescribeTable("kubectl on it answers", func(ctx SpecContext, args string, parts ...string) {
		output, err := kubectl(ctx, strings.Fields(args)...)
		Expect(err).NotTo(HaveOccurred(), "%s", output)
		for _, part := range parts {
			Expect(output).To(ContainSubstring(part))
		}
	},
		Entry("pods", "get pods", "web-0", "1/1", "Running"),
		Entry("pods, wide", "get pods -o wide", nodeName, "web-9"),
		Entry("a pod as YAML", "get pod web-3 -o yaml", "phase: Running", "kind: Pod"),
		Entry("the node", "get nodes -o wide", nodeName, "containerd://"),
		Entry("services of all namespaces", "get services -A", "kubernetes"),
		Entry("one configmap", "get configmap settings -o yaml", "colour: blue"),
		Entry("one secret's row", "get secret key", "Opaque"),
		Entry("a pod's description", "describe pod web-1", "Ready: ", "settings"),
		Entry("a watch that ends", "get pods -w --request-timeout=3s || true", "web-5"),
	)

	It("refuses what it cannot decide", func(ctx SpecContext) {
		output, err := kubectl(ctx, "create", "configmap", "new")
		Expect(err).To(HaveOccurred())
		Expect(output).To(ContainSubstring("out of reach"))
		output, err = kubectl(ctx, "get", "configmap", "never-looked-for")
		Expect(err).To(HaveOccurred())
		Expect(output).To(ContainSubstring("cacheWarmup.resources"))
	})

	It("takes up what the cloud decided meanwhile, and nothing else", func(ctx SpecContext) {
		before := upstreamPods(ctx)
		Expect(client.CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, "web-9", metav1.DeleteOptions{})).To(Succeed())
		settings, err := client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Get(ctx, "settings", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		settings.Data["colour"] = "green"
		_, err = client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Update(ctx, settings, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Consistently(ctx, func() string {
			output, _ := kubectl(ctx, "get", "pods")
			return output
		}).WithTimeout(5*time.Second).WithPolling(time.Second).Should(ContainSubstring("web-9"), "nobody has told the node")

		By("the link comes back")
		Expect(node.RestoreWAN(ctx)).To(Succeed())
		Eventually(ctx, func() bool {
			_, err := client.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, "web-9", metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		}).WithTimeout(2*time.Minute).WithPolling(time.Second).Should(BeTrue(), journal)
		Eventually(ctx, func() (string, error) {
			return node.Exec(ctx, "sh", "-c", "cat /var/lib/kubelet/pods/"+string(before["web-1"].UID)+"/volumes/kubernetes.io~configmap/settings/colour")
		}).WithTimeout(3*time.Minute).WithPolling(time.Second).Should(Equal("green"), journal)
		after := upstreamPods(ctx)
		Expect(after).To(HaveLen(pods - 1))
		for name, pod := range after {
			Expect(pod.UID).To(Equal(before[name].UID), "%s was made anew", name)
			Expect(pod.Status.ContainerStatuses[0].RestartCount).To(Equal(before[name].Status.ContainerStatuses[0].RestartCount+1), "%s", name)
			Expect(scenario.Ready(&pod)).To(BeTrue(), "%s", name)
		}
	}, SpecTimeout(6*time.Minute))
})

var _ = Describe("An agent that is killed every second", func() {
	BeforeEach(full)

	It("still brings the node back cut off", func(ctx SpecContext) {
		powerCut(ctx, edgenode.WANBlackhole)
		// Until systemd of the node can be asked.
		Eventually(ctx, func() error {
			_, err := node.Exec(ctx, "sh", "-c", "systemd-run --quiet --unit=killer sh -c 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 1; systemctl kill -s KILL rekindle-agent.service; done'")
			return err
		}).WithTimeout(soon).WithPolling(poll).Should(Succeed())
		waitReadyHere(ctx, allPods()...)
		Expect(node.RestoreWAN(ctx)).To(Succeed())
		inStep(ctx)
	}, SpecTimeout(5*time.Minute))
})
