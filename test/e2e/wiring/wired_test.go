package wiring

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/test/edgenode"
	"rekindle.edge/test/scenario/spec"
)

// localAPI as a program on the node calls it.
var localAPI = []string{"kubectl", "--server=https://127.0.0.1:7443", "--certificate-authority=/run/rekindle/pki/ca.crt", "--cache-dir=/tmp/kube"}

// isWired says whether kubelet's process has the agent's arguments.
func isWired(ctx context.Context, node *edgenode.Node) (bool, error) {
	pid, err := node.Exec(ctx, "systemctl", "show", "-p", "MainPID", "--value", "kubelet.service")
	if err != nil {
		return false, err
	}
	args, err := node.Exec(ctx, "cat", "/proc/"+strings.TrimSpace(pid)+"/cmdline")
	return strings.Contains(args, "--kubeconfig=/run/rekindle/kubelet.kubeconfig") &&
		strings.Contains(args, "--container-runtime-endpoint=unix:///run/rekindle/cri.sock"), err
}

// tree lists the node's files with mode, owner, size, target and content, but for those
// that a running node writes by itself.
func tree(ctx context.Context, node *edgenode.Node) []string {
	GinkgoHelper()
	const script = `find / -xdev \( -path /var/log -o -path /var/lib/kubelet -o -path /var/lib/containerd -o -path /var/lib/cni -o -path /var/lib/systemd -o -path '/var/lib/rekindle/*' -o -path /tmp -o -path /var/tmp \) -prune -o -printf '%p %M %u:%g %l ' \( -type f -exec sha256sum {} \; -o -printf '\n' \)
ip -brief address show dev lo; ip route show table all; systemctl list-unit-files --no-legend | awk '{print $1, $2}' | sort; ls -A /run /run/systemd/generator*`
	output, err := node.Exec(ctx, "sh", "-c", script)
	Expect(err).NotTo(HaveOccurred())
	return strings.Split(output, "\n")
}

// containers that run in the node's API pods, with how often they were restarted.
func containers(ctx context.Context, node *edgenode.Node) []string {
	GinkgoHelper()
	list, err := client.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node.Name})
	Expect(err).NotTo(HaveOccurred())
	var ids []string
	for _, pod := range list.Items {
		for _, status := range pod.Status.ContainerStatuses {
			ids = append(ids, fmt.Sprintf("%s %s %d", pod.Name, status.ContainerID, status.RestartCount))
		}
	}
	return ids
}

func kubeletPID(ctx context.Context, node *edgenode.Node) string {
	GinkgoHelper()
	pid, err := node.Exec(ctx, "systemctl", "show", "-p", "MainPID", "--value", "kubelet.service")
	Expect(err).NotTo(HaveOccurred())
	return pid
}

var _ = Describe("an installed agent", Ordered, func() {
	var node *edgenode.Node
	var before, running []string

	BeforeAll(func(ctx SpecContext) {
		node = newNode(ctx, "edge-wired")
		_, err := node.FirstBoot(ctx)
		Expect(err).NotTo(HaveOccurred())
		createPods(ctx, node)
		before, running = tree(ctx, node), containers(ctx, node)
	}, NodeTimeout(3*time.Minute))

	// kubectl runs on the node against the local API.
	kubectl := func(ctx context.Context, args ...string) string {
		GinkgoHelper()
		output, err := node.Exec(ctx, append(append([]string{}, localAPI...), args...)...)
		Expect(err).NotTo(HaveOccurred())
		return output
	}

	Context("where it cannot work", func() {
		It("refuses with a message, before a file is touched", func(ctx SpecContext) {
			for config, want := range map[string]string{
				"kubeletUnit: kublet.service\n":              "there is no unit kublet.service",
				"criEndpoint: unix:///run/nothing.sock\n":    "kubelet uses the container runtime at unix:///run/containerd/containerd.sock",
				"kubeconfig: /etc/kubernetes/nothing.conf\n": "no kubeconfig of kubelet",
			} {
				_, err := node.ExecInput(ctx, strings.NewReader(config), "sh", "-c", "cat > /tmp/agent.yaml; "+binary+" install --config /tmp/agent.yaml")
				Expect(err).To(MatchError(And(ContainSubstring("nothing was changed"), ContainSubstring(want))))
			}
			_, err := node.Exec(ctx, "rm", "/tmp/agent.yaml")
			Expect(err).NotTo(HaveOccurred())
			Expect(cmp.Diff(before, tree(ctx, node))).To(BeEmpty())
		}, SpecTimeout(soon))

		It("rolls all back when the local API cannot serve", func(ctx SpecContext) {
			_, err := node.Exec(ctx, "systemd-run", "--collect", "--unit=squatter", "socat", "TCP-LISTEN:7443,bind=127.0.0.1,fork,reuseaddr", "EXEC:cat")
			Expect(err).NotTo(HaveOccurred())
			Eventually(ctx, func() error { _, err := node.Exec(ctx, "sh", "-c", "ss -tln | grep -q 7443"); return err }).WithTimeout(soon).WithPolling(poll).Should(Succeed())
			_, err = node.Exec(ctx, binary, "install")
			Expect(err).To(MatchError(ContainSubstring("not installed")))
			Expect(node.Systemctl(ctx, "stop", "squatter")).To(Succeed())
			Expect(isWired(ctx, node)).To(BeFalse())
			Expect(cmp.Diff(before, tree(ctx, node))).To(BeEmpty())
		}, SpecTimeout(2*time.Minute))
	})

	It("is there in bounded time, and no pod notices", func(ctx SpecContext) {
		install(ctx, node)
		Expect(isWired(ctx, node)).To(BeTrue())
		Expect(containers(ctx, node)).To(Equal(running))
		waitPodsReady(ctx, node)
	}, SpecTimeout(2*time.Minute))

	It("is not changed by a second install", func(ctx SpecContext) {
		was, pid := tree(ctx, node), kubeletPID(ctx, node)
		Expect(install(ctx, node)).To(ContainSubstring("nothing to change"))
		Expect(cmp.Diff(was, tree(ctx, node))).To(BeEmpty())
		Expect(kubeletPID(ctx, node)).To(Equal(pid))
	}, SpecTimeout(soon))

	It("starts a new pod for kubelet, and passes logs and exec", func(ctx SpecContext) {
		pod := edgenode.WebPod("late", node.Name)
		_, err := client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		waitReady(ctx, node, "default/late", node.Current().Uptime()+soon)

		// Through the API server, which calls kubelet, which asks the local API who calls.
		Expect(spec.Kubectl(ctx, shared, "", "logs", "late")).To(ContainSubstring("listening on"))
		Expect(spec.Kubectl(ctx, shared, "", "exec", "late", "--", "/web", "-h")).To(ContainSubstring("ready-after"))

		// Through the local API, upgraded connection and all.
		token := "--token=" + spec.Token(ctx, client, "wiring-admin", "cluster-admin")
		Expect(kubectl(ctx, token, "logs", "late")).To(ContainSubstring("listening on"))
		output, err := node.Exec(ctx, "sh", "-c", strings.Join(append(localAPI, token, "exec", "late", "--", "/web", "-h", "2>&1"), " "))
		Expect(err).NotTo(HaveOccurred())
		Expect(output).To(ContainSubstring("ready-after"))
		Expect(client.CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, "late", metav1.DeleteOptions{})).To(Succeed())
		Eventually(ctx, func() ([]string, error) { return containers(ctx, node), nil }).WithTimeout(soon).WithPolling(poll).Should(Equal(running))
	}, SpecTimeout(2*time.Minute))

	It("lets programs on the node use the API with the node's certificate, on both addresses", func(ctx SpecContext) {
		const pem = "/var/lib/kubelet/pki/kubelet-client-current.pem"
		for _, address := range []string{"127.0.0.1", "169.254.77.43"} {
			output := kubectl(ctx, "--server=https://"+address+":7443", "--client-certificate="+pem, "--client-key="+pem,
				"get", "pods", "--field-selector=spec.nodeName="+node.Name)
			Expect(output).To(ContainSubstring(podName(node, 0)))
		}
	}, SpecTimeout(soon))

	It("is upgraded without a restart of kubelet or a pod, and goes back a version", func(ctx SpecContext) {
		pid := kubeletPID(ctx, node)
		for _, version := range []string{"newer", "older"} {
			// What follows a program's last section does not change what it does.
			_, err := node.Exec(ctx, "sh", "-c", "cp "+binary+" /tmp/agent; echo "+version+" >> /tmp/agent; /tmp/agent install; rm /tmp/agent")
			Expect(err).NotTo(HaveOccurred())
			Expect(node.Exec(ctx, "tail", "-c", "6", binary)).To(Equal(version + "\n"))
			Expect(kubeletPID(ctx, node)).To(Equal(pid))
			Expect(containers(ctx, node)).To(Equal(running))
		}
		waitPodsReady(ctx, node)
	}, SpecTimeout(2*time.Minute))

	It("follows an upgrade of kubelet's unit, and says so when one unhooks it", func(ctx SpecContext) {
		// A package writes a drop-in with another command line.
		upgrade := func(name, start string) {
			GinkgoHelper()
			dropin := "[Service]\nExecStart=\nExecStart=" + start + "\n"
			_, err := node.ExecInput(ctx, strings.NewReader(dropin), "sh", "-c",
				"mkdir -p /etc/systemd/system/kubelet.service.d; cat > /etc/systemd/system/kubelet.service.d/"+name)
			Expect(err).NotTo(HaveOccurred())
			Expect(node.Systemctl(ctx, "daemon-reload")).To(Succeed())
			Expect(node.Systemctl(ctx, "restart", "kubelet.service")).To(Succeed())
		}
		unit, err := node.Exec(ctx, "sed", "-n", "s/^ExecStart=//p", "/etc/systemd/system/kubelet.service")
		Expect(err).NotTo(HaveOccurred())
		start := strings.TrimSpace(unit)

		upgrade("50-package.conf", start+" --max-pods=42")
		Eventually(ctx, isWired).WithArguments(node).WithTimeout(soon).WithPolling(poll).Should(BeTrue())
		Expect(node.Exec(ctx, "cat", "/proc/"+strings.TrimSpace(kubeletPID(ctx, node))+"/cmdline")).To(ContainSubstring("--max-pods=42"))

		upgrade("zzz-package.conf", start)
		status := func() (string, error) {
			return node.Exec(ctx, "systemctl", "show", "-p", "StatusText", "--value", "rekindle-agent.service")
		}
		Eventually(ctx, status).WithTimeout(soon).WithPolling(poll).Should(ContainSubstring("something has changed its unit"))

		_, err = node.Exec(ctx, "rm", "-r", "/etc/systemd/system/kubelet.service.d")
		Expect(err).NotTo(HaveOccurred())
		Expect(node.Systemctl(ctx, "daemon-reload")).To(Succeed())
		Expect(node.Systemctl(ctx, "restart", "kubelet.service")).To(Succeed())
		Eventually(ctx, status).WithTimeout(soon).WithPolling(poll).Should(ContainSubstring("kubelet is wired"))
	}, SpecTimeout(3*time.Minute))

	It("loses kubelet when it does not serve, and gets it back", func(ctx SpecContext) {
		Expect(node.Systemctl(ctx, "kill", "--signal=STOP", "rekindle-agent.service")).To(Succeed())
		Eventually(ctx, isWired).WithArguments(node).WithTimeout(30 * time.Second).WithPolling(poll).Should(BeFalse())
		Eventually(ctx, isWired).WithArguments(node).WithTimeout(2 * time.Minute).WithPolling(poll).Should(BeTrue())
		Expect(containers(ctx, node)).To(Equal(running))
	}, SpecTimeout(4*time.Minute))

	It("serves through a restart of its own, with no connection refused", func(ctx SpecContext) {
		const pem = "/var/lib/kubelet/pki/kubelet-client-current.pem"
		Expect(node.Systemctl(ctx, "kill", "--signal=KILL", "rekindle-agent.service")).To(Succeed())
		for range 5 {
			_, err := node.Exec(ctx, "curl", "--silent", "--show-error", "--fail", "--max-time", "10",
				"--cacert", "/run/rekindle/pki/ca.crt", "--cert", pem, "https://127.0.0.1:7443/api/v1/nodes/"+node.Name)
			Expect(err).NotTo(HaveOccurred())
		}
	}, SpecTimeout(soon))

	It("is gone after uninstall, byte for byte, and no pod notices", func(ctx SpecContext) {
		output, err := node.Exec(ctx, binary, "uninstall")
		Expect(err).NotTo(HaveOccurred())
		say("uninstall: %s", output)
		Expect(isWired(ctx, node)).To(BeFalse())
		Expect(cmp.Diff(before, tree(ctx, node))).To(BeEmpty())
		Expect(containers(ctx, node)).To(Equal(running))
		waitPodsReady(ctx, node)
	}, SpecTimeout(2*time.Minute))
})
