package edgenode_test

import (
	"os"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/test/edgenode"
)

var _ = Describe("A boot", func() {
	It("has systemd as PID 1, a boot id of its own and clocks from zero", func(ctx SpecContext) {
		node, boot := firstBoot(ctx, edgenode.Options{Name: "boot"})

		Expect(run(ctx, node, "cat", "/proc/1/comm")).To(Equal("systemd\n"))
		Expect(run(ctx, node, "systemctl", "is-system-running", "--wait")).To(Equal("running\n"))
		expectIdentity(ctx, node, boot)

		By("booting again")
		again, err := node.Reboot(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(again.ID).NotTo(Equal(boot.ID))
		expectIdentity(ctx, node, again)
		Expect(again.Uptime()).To(BeNumerically("<", boot.Uptime()))
	}, SpecTimeout(startTimeout))

	It("leaves the settings of the machine's kernel alone", func(ctx SpecContext) {
		settings := []string{"vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops"}
		before := machineSettings(settings)
		node, _ := firstBoot(ctx, edgenode.Options{Name: "sysctl"})
		Expect(machineSettings(settings)).To(Equal(before))
		bounding, err := strconv.ParseUint(strings.TrimSpace(run(ctx, node, "sed", "-n", "s/^CapBnd:[[:space:]]*//p", "/proc/1/status")), 16, 64)
		Expect(err).NotTo(HaveOccurred())
		Expect(bounding&(1<<unix.CAP_SYS_TIME)).To(BeZero(), "the machine's clock can be set from the node")
	}, SpecTimeout(startTimeout))

	It("mounts the disk that an orderly shutdown has written back", func(ctx SpecContext) {
		node, _ := firstBoot(ctx, edgenode.Options{Name: "orderly"})
		run(ctx, node, "sh", "-c", "echo kept >/var/lib/unsynced; echo volatile >/run/marker")

		_, err := node.Reboot(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(run(ctx, node, "cat", "/var/lib/unsynced")).To(Equal("kept\n"))
		_, err = node.Exec(ctx, "cat", "/run/marker")
		Expect(err).To(MatchError(ContainSubstring("No such file")))
		Expect(node.WaitReady(ctx)).To(Succeed())
	}, SpecTimeout(startTimeout))
})

var _ = Describe("A node with logind", func() {
	It("has kubelet end its pods before an orderly shutdown goes on", func(ctx SpecContext) {
		node, _ := firstBoot(ctx, edgenode.Options{Name: "logind", Logind: true})
		pod, err := client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, edgenode.WebPod("ended", node.Name), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		status := func() (corev1.PodStatus, error) {
			pod, err := client.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, pod.Name, metav1.GetOptions{})
			return pod.Status, err
		}
		Eventually(ctx, status).WithTimeout(startTimeout).WithPolling(poll).Should(HaveField("Phase", corev1.PodRunning))

		Expect(node.Shutdown(ctx)).To(Succeed())
		Expect(status()).To(And(
			HaveField("Phase", corev1.PodSucceeded), // the web server ends well on SIGTERM
			HaveField("Conditions", ContainElement(HaveField("Message", "Pod was terminated in response to imminent node shutdown."))),
		))
	}, SpecTimeout(startTimeout))
})

// expectIdentity compares what the node sees of its boot with what the outside says.
func expectIdentity(ctx SpecContext, node *edgenode.Node, boot *edgenode.Boot) {
	GinkgoHelper()
	machine, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	Expect(err).NotTo(HaveOccurred())
	Expect(boot.ID).NotTo(Equal(strings.TrimSpace(string(machine))))
	Expect(run(ctx, node, "cat", "/proc/sys/kernel/random/boot_id")).To(Equal(boot.ID + "\n"))

	before := boot.Uptime()
	fields := strings.Fields(run(ctx, node, "cat", "/proc/uptime"))
	after := boot.Uptime()
	seconds, err := strconv.ParseFloat(fields[0], 64)
	Expect(err).NotTo(HaveOccurred())
	// /proc/uptime has hundredths.
	uptime := time.Duration(seconds * float64(time.Second))
	Expect(uptime).To(BeNumerically("~", (before+after)/2, (after-before)/2+10*time.Millisecond))
	Expect(boot.Since(time.Now())).To(BeNumerically("~", boot.Uptime(), 10*time.Millisecond))
}

func machineSettings(names []string) map[string]string {
	GinkgoHelper()
	values := map[string]string{}
	for _, name := range names {
		value, err := os.ReadFile("/proc/sys/" + name)
		Expect(err).NotTo(HaveOccurred())
		values[name] = string(value)
	}
	return values
}
