package readiness

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// device is a resource of a plugin, dongle one that the node has without any.
	device = "rekindle.test/device"
	dongle = "rekindle.test/dongle"
)

// deviceUnit is the plugin's service. At a boot it is as late as a plugin that is a pod.
const deviceUnit = `[Unit]
Description=Device plugin for tests
After=kubelet.service
[Service]
ExecStart=/bin/sh -c '[ -e /run/device-soon ] || sleep 60; exec /usr/local/bin/device-test -resource ` + device + `'
Restart=always
RestartSec=1
[Install]
WantedBy=multi-user.target
`

// devicePlugin builds the plugin and starts it on the node.
func devicePlugin(ctx context.Context) {
	GinkgoHelper()
	shell(ctx, "touch /run/device-soon")
	installProgram(ctx, "device", deviceUnit)
	waitAllocatable(ctx, device)
}

// withoutPlugin has the node have a resource that somebody says it has.
func withoutPlugin(ctx context.Context) {
	GinkgoHelper()
	_, err := client.CoreV1().Nodes().Patch(ctx, nodeName, "application/merge-patch+json",
		[]byte(`{"status":{"capacity":{"`+dongle+`":"2"}}}`), metav1.PatchOptions{}, "status")
	Expect(err).NotTo(HaveOccurred())
	waitAllocatable(ctx, dongle)
}

func waitAllocatable(ctx context.Context, name corev1.ResourceName) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		n, err := client.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(n.Status.Allocatable.Name(name, resource.DecimalSI).Value()).To(BeNumerically(">", 0))
	}).WithTimeout(soon).WithPolling(poll).Should(Succeed(), journal)
}

// asks has a pod ask for one of a resource.
func asks(name corev1.ResourceName) change {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{name: resource.MustParse("1")}
	}
}
