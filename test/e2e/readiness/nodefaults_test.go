package readiness

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// policy has the node's policy say this as well.
func policy(fields string) step {
	return func(ctx context.Context) { setPolicy(ctx, targetOfTwo, fields) }
}

// dropIn adds to kubelet's unit and starts kubelet with it.
func dropIn(name, content string) step {
	return func(ctx context.Context) {
		write(ctx, systemd+"kubelet.service.d/"+name, content)
		shell(ctx, "systemctl daemon-reload && systemctl restart kubelet.service")
	}
}

// ledElsewhere gives kubelet's command a last word, as an administrator's drop-in would who
// knows nothing of the agent.
func ledElsewhere(ctx context.Context) {
	GinkgoHelper()
	command := shell(ctx, "sed -n 's/^ExecStart=//p' "+systemd+"kubelet.service")
	dropIn("zzz-own.conf", "[Service]\nExecStart=\nExecStart="+command+"\n")(ctx)
}

// neverOnline orders kubelet after a network that never comes.
func neverOnline(ctx context.Context) {
	write(ctx, systemd+"wait-online.service", "[Unit]\nBefore=network-online.target\n[Service]\nType=oneshot\nTimeoutStartSec=infinity\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=network-online.target\n")
	write(ctx, systemd+"kubelet.service.d/online.conf", "[Unit]\nWants=network-online.target\nAfter=network-online.target\n")
	shell(ctx, "systemctl enable wait-online.service && systemctl daemon-reload")
}

// certificate gives kubelet a client certificate that ends after life.
func certificate(life time.Duration) step {
	return func(ctx context.Context) {
		GinkgoHelper()
		pair, err := shared.ShortLived(nodeName, life)
		Expect(err).NotTo(HaveOccurred())
		write(ctx, pki+"kubelet-client-current.pem", string(pair))
	}
}

// noEviction takes from kubelet what it does about a full disk, so that it lasts until the
// outage.
const noEviction = `sed -i 's/available: 1%/available: 0%/' ` + kubelet + `config.yaml && systemctl restart kubelet.service`

// fill leaves that many MiB of the node's own disk.
func fill(leave string) step {
	return func(ctx context.Context) {
		GinkgoHelper()
		free := shell(ctx, "df --output=avail -m / | tail -n 1")
		shell(ctx, fmt.Sprintf("fallocate -l $((%s - %s))M /var/lib/filler 2>/dev/null; [ %s != 0 ] || cat /dev/zero > /var/lib/filler-2 2>/dev/null; true", strings.TrimSpace(free), leave, leave))
	}
}

// fillInodes leaves no inode of the node's own disk.
func fillInodes(ctx context.Context) {
	shell(ctx, "mkdir /var/lib/filler && cd /var/lib/filler && seq 70000 | xargs touch 2>/dev/null; true")
}
