package readiness

import (
	"time"

	"rekindle.edge/api/v1alpha1"
)

const (
	systemd = "/etc/systemd/system/"
	kubelet = "/var/lib/kubelet/"
	pki     = kubelet + "pki/"
	// certificateLife is enough for a boot and the return of two pods.
	certificateLife = 80 * time.Second
)

// ofTheNode has rows of which each has a boot of its own: the fault, or what looks like one,
// concerns the node, and two plain pods say whether it came back.
var ofTheNode = []row{
	{name: "nothing-done", want: comesBack},

	// How kubelet gets to the agent at the next boot.
	{name: "policy-observes", fault: policy(", mode: Observe"), reason: v1alpha1.ReasonObserveOnly, want: staysDown},
	{name: "kubelet-led-elsewhere", fault: ledElsewhere, reason: v1alpha1.ReasonUnhooked, want: staysDown},
	{name: "kubelet-with-another-flag", fault: dropIn("zz-flag.conf", "[Service]\nEnvironment=GOGC=90\n"), want: comesBack},
	{name: "generator-removed", fault: onNode("rm /etc/systemd/system-generators/rekindle-kubelet"), reason: v1alpha1.ReasonInstallIncomplete, want: staysDown},
	{name: "retry-unit-removed", fault: onNode("rm " + systemd + "rekindle-retry.service"), want: comesBack},
	{name: "agent-masked", fault: onNode("ln -sf /dev/null " + systemd + "rekindle-agent.service && systemctl daemon-reload"), reason: v1alpha1.ReasonUnitDisabled, want: staysDown},
	// Kubelet wants both, and starts them.
	{name: "agent-disabled", fault: onNode("systemctl disable rekindle-agent.service"), want: comesBack},
	{name: "containerd-disabled", fault: onNode("systemctl disable containerd.service"), want: comesBack},
	{name: "kubelet-disabled", fault: onNode("systemctl disable kubelet.service"), reason: v1alpha1.ReasonUnitDisabled, want: staysDown},

	// What kubelet starts with.
	{name: "kubelet-configuration-broken", fault: onNode("echo ']' >> " + kubelet + "config.yaml"), reason: v1alpha1.ReasonKubeletConfig, want: staysDown},
	{name: "kubelet-configuration-newer", fault: onNode("printf '\\nfromTheFuture: 1\\n' >> " + kubelet + "config.yaml"), want: comesBack},
	{name: "graceful-shutdown-set", fault: onNode("printf '\\nshutdownGracePeriod: 15s\\n' >> " + kubelet + "config.yaml"), want: comesBack},
	{name: "checkpoint-of-another-policy", fault: onNode("sed -i 's/none/static/g' " + kubelet + "cpu_manager_state"), reason: v1alpha1.ReasonKubeletCheckpoint, want: staysDown},
	{name: "checkpoint-removed", fault: onNode("rm " + kubelet + "cpu_manager_state"), want: comesBack},
	{name: "client-certificate-empty", fault: onNode(": > " + pki + "kubelet-client-current.pem"), reason: v1alpha1.ReasonIdentityUnusable, want: staysDown},
	{name: "serving-certificate-empty", fault: onNode(": > " + pki + "kubelet.crt; : > " + pki + "kubelet.key"), want: comesBack},
	{name: "network-that-is-never-online", fault: neverOnline, want: comesBack},

	// The way back into the cluster.
	{name: "certificate-ends-in-the-outage", fault: certificate(certificateLife), cut: certificateLife, reason: v1alpha1.ReasonCertificateEnding, want: staysOut},
	{name: "certificate-outlasts-the-outage", fault: certificate(26 * time.Hour), cut: certificateLife, want: comesBack},

	// The pod network.
	{name: "network-configuration-removed", fault: onNode("rm /etc/cni/net.d/*"), reason: v1alpha1.ReasonRuntimeNotReady, want: staysDown},
	{name: "network-file-in-memory", fault: likeFlannel, reason: v1alpha1.ReasonCNIFileVolatile, want: staysDown},
	{name: "network-file-that-is-kept", policy: ", snapshot: {nodeFiles: [" + subnetFile + "]}", fault: likeFlannel, want: comesBack},
	{name: "network-credential-valid", fault: asksLocally(time.Hour), want: comesBack},
	{name: "network-credential-ended", prepare: asksLocally(time.Hour), fault: asksLocally(-time.Minute), reason: v1alpha1.ReasonCNICredentialEnded, want: staysDown},

	// The disk.
	{name: "disk-without-space", prepare: onNode(noEviction), fault: fill("0"), reason: v1alpha1.ReasonDiskFull, want: staysDown},
	{name: "disk-half-full", prepare: onNode(noEviction), fault: fill("600"), want: comesBack},
	{name: "disk-without-inodes", prepare: onNode(noEviction), fault: fillInodes, reason: v1alpha1.ReasonDiskFull, want: staysDown},
}
