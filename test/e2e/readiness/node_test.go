package readiness

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/test/edgenode"
	"rekindle.edge/test/scenario/spec"
)

// registryName is a registry that the node reaches while the link is up.
const registryName = "registry.example"

// serveRegistry answers at an address of this machine, and gives it.
func serveRegistry() string {
	GinkgoHelper()
	listener, err := net.Listen("tcp", shared.Network().HostIP().String()+":0") //nolint:noctx // it lives as long as the suite
	Expect(err).NotTo(HaveOccurred())
	server := &http.Server{Handler: &registry, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	DeferCleanup(server.Close)
	return listener.Addr().String()
}

// shell runs a line on the node.
func shell(ctx context.Context, line string) string {
	GinkgoHelper()
	output, err := node.Exec(ctx, "/bin/sh", "-c", line)
	Expect(err).NotTo(HaveOccurred(), "%s", output)
	return strings.TrimSpace(output)
}

// write makes a file of the node.
func write(ctx context.Context, path, content string) {
	GinkgoHelper()
	_, err := node.ExecInput(ctx, strings.NewReader(content), "/bin/sh", "-c", "mkdir -p "+filepath.Dir(path)+" && cat > "+path)
	Expect(err).NotTo(HaveOccurred())
}

// setPolicy renders the node's NodeRecovery with a target and these fields of its spec, in
// YAML that begins with a comma.
func setPolicy(ctx context.Context, target time.Duration, fields string) {
	GinkgoHelper()
	applyText(ctx, fmt.Sprintf("apiVersion: rekindle.edge/v1alpha1\nkind: NodeRecovery\nmetadata: {name: %s}\nspec: {policyName: edge, policyGeneration: 1, target: {recoverySeconds: %d}%s}\n",
		nodeName, int(target.Seconds()), fields))
}

// applyText is kubectl apply of that YAML.
func applyText(ctx context.Context, yaml string) {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "object.yaml")
	Expect(os.WriteFile(path, []byte(yaml), 0o600)).To(Succeed())
	kubectl(ctx, "apply", "-f", path)
}

// fresh boots the node with a saved disk, the link up, and none of the API's pods but those
// that keep says. Without such a disk it saves the present one under that name.
func fresh(ctx context.Context, disk string, keep func(name string) bool) {
	GinkgoHelper()
	pods, err := client.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	for _, pod := range pods.Items {
		if keep == nil || !keep(pod.Name) {
			now := int64(0)
			Expect(client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})).To(Succeed())
		}
	}
	if node.Current() != nil {
		shell(ctx, "sync")
		Expect(node.PowerCut(ctx)).To(Succeed())
	}
	if saved[disk] {
		Expect(node.RestoreDisk(ctx, disk)).To(Succeed())
	} else {
		Expect(node.SaveDisk(ctx, disk)).To(Succeed())
		saved[disk] = true
	}
	Expect(node.RestoreWAN(ctx)).To(Succeed())
	_, err = node.Boot(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(node.WaitReady(ctx)).To(Succeed())
	Eventually(ctx, func(g Gomega) {
		n, err := client.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(n.Spec.Taints).To(BeEmpty())
	}).WithTimeout(soon).WithPolling(poll).Should(Succeed(), journal)
}

var saved = map[string]bool{}

// cutOff takes the power once all changes are on the disk, and boots without the link.
func cutOff(ctx context.Context) *edgenode.Boot {
	GinkgoHelper()
	time.Sleep(batch)
	shell(ctx, "sync")
	Expect(node.PowerCut(ctx)).To(Succeed())
	Expect(node.CutWAN(ctx, edgenode.WANBlackhole)).To(Succeed())
	boot, err := node.Boot(ctx)
	Expect(err).NotTo(HaveOccurred())
	return boot
}

// journal is what the agent and kubelet said last.
func journal() string { return spec.Journal(node) }
