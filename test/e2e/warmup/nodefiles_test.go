package warmup

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/edgenode"
)

const (
	subnetFile = "/run/flannel/subnet.env"
	flannel    = "/opt/cni/bin/flannel"
	conflist   = "/etc/cni/net.d/10-pods.conflist"
	// kept is where the agent's copies are.
	kept = "/var/lib/rekindle/nodefiles"
)

// flannelPlugin does what flannel's plugin does: it fails until its daemon has written the
// node's subnet, and hands over to bridge with it.
const flannelPlugin = `#!/bin/sh
set -eu
config=$(cat)
case "$CNI_COMMAND" in
ADD|CHECK)
	if ! [ -r ` + subnetFile + ` ]; then
		echo '{"cniVersion":"1.0.0","code":11,"msg":"loadFlannelSubnetEnv failed: open ` + subnetFile + `: no such file or directory"}'
		exit 1
	fi ;;
DEL) [ -r ` + subnetFile + ` ] || exit 0 ;;
esac
FLANNEL_SUBNET=127.0.0.0/8
[ -r ` + subnetFile + ` ] && . ` + subnetFile + `
echo "$config" | sed 's/"type":"flannel"/"type":"bridge"/; s#@FLANNEL_SUBNET@#'"$FLANNEL_SUBNET"'#' | exec /usr/lib/cni/bridge
`

const flannelConf = `{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "flannel", "bridge": "cni0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "@FLANNEL_SUBNET@"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}
]}
`

// daemon writes what flannel's daemon writes when it runs.
func daemon(ctx context.Context) {
	GinkgoHelper()
	put(ctx, subnetFile, "640", fmt.Sprintf("FLANNEL_SUBNET=%s\nFLANNEL_MTU=1450\n", shared.Network().PodCIDR(1)))
	sh(ctx, "chown 4321:1234 %s", subnetFile)
}

var _ = Describe("A CNI that reads a file on tmpfs", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		original := sh(ctx, "cat %s", conflist)
		put(ctx, flannel, "755", flannelPlugin)
		put(ctx, conflist, "644", flannelConf)
		daemon(ctx)
		DeferCleanup(func(ctx SpecContext) {
			put(ctx, conflist, "644", original+"\n")
			Expect(node.RestoreWAN(ctx)).To(Succeed())
		})
	})

	It("gives pods no network after a power cut while nobody has written the file", func(ctx SpecContext) {
		policy(ctx, v1alpha1.NodeRecoverySpec{})
		create(ctx, edgenode.WebPod("plain", nodeName))
		powerCut(ctx)
		Eventually(ctx, func() string { return log("kubelet.log") }).WithTimeout(soon).WithPolling(poll).
			Should(ContainSubstring("loadFlannelSubnetEnv failed"), journal)
		Consistently(ctx, readyHere).WithArguments("plain").WithTimeout(10*time.Second).WithPolling(time.Second).
			Should(BeFalse(), "the daemon has not run")
		daemon(ctx)
		Eventually(ctx, readyHere).WithArguments("plain").WithTimeout(soon).WithPolling(poll).Should(BeTrue(), journal)
		Expect(node.RestoreWAN(ctx)).To(Succeed())
	}, SpecTimeout(4*time.Minute))

	It("gives pods their network before its daemon runs once the file is a node file", func(ctx SpecContext) {
		policy(ctx, v1alpha1.NodeRecoverySpec{Snapshot: v1alpha1.Snapshot{NodeFiles: []string{subnetFile}}})
		create(ctx, edgenode.WebPod("kept", nodeName))
		before := sh(ctx, "stat -c '%%a %%u %%g %%y' %[1]s; cat %[1]s", subnetFile)
		Eventually(ctx, func() string { return sh(ctx, "ls %s 2>/dev/null || true", kept) }).WithTimeout(soon).WithPolling(poll).
			ShouldNot(BeEmpty(), journal)
		Expect(sh(ctx, "stat -c %%a %s", filepath.Join(kept, "*"))).To(Equal("600"))

		powerCut(ctx)
		Eventually(ctx, readyHere).WithArguments("kept").WithTimeout(soon).WithPolling(poll).Should(BeTrue(), journal)
		Expect(log("kubelet.log")).NotTo(ContainSubstring("loadFlannelSubnetEnv failed"), "it was there before the first pod")
		Expect(sh(ctx, "stat -c '%%a %%u %%g %%y' %[1]s; cat %[1]s", subnetFile)).To(Equal(before))
	}, SpecTimeout(4*time.Minute))
})
