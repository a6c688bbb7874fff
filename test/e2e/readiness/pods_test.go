package readiness

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/images"
)

// onePolicy is a policy under which pods share one boot. Fields are those of the spec of a
// NodeRecovery, in YAML.
type onePolicy struct {
	name, fields string
	rows         []row
}

// within is the target: of fewer pods it is nearer.
func (p onePolicy) within() time.Duration {
	if full() {
		return target
	}
	return targetOfTwo
}

const literal = "--from-literal=k=v"

// byDefault has the pods of a policy that says nothing but that a file is kept.
var byDefault = onePolicy{
	name: "by default", fields: ", snapshot: {nodeFiles: [/run/shop-kept/settings]}",
	rows: []row{
		{name: "plain", want: comesBack},

		// What a pod refers to.
		{name: "secret-removed", pod: []change{secret("gone", false)}, prepare: create("secret", "generic", "gone", literal), fault: drop("secret", "gone"),
			reason: v1alpha1.ReasonObjectMissing, want: staysDown, core: true},
		{name: "optional-secret-removed", pod: []change{secret("spare", true)}, prepare: create("secret", "generic", "spare", literal), fault: drop("secret", "spare"),
			want: comesBack, core: true},
		{name: "optional-secret-never-there", pod: []change{secret("never", true)}, want: comesBack},
		{name: "key-removed", pod: []change{settingsKey("thin", "k", false)}, prepare: create("configmap", "thin", literal), fault: dropKey("thin"),
			reason: v1alpha1.ReasonKeyMissing, want: staysDown},
		{name: "optional-key-removed", pod: []change{settingsKey("slim", "k", true)}, prepare: create("configmap", "slim", literal), fault: dropKey("slim"),
			want: comesBack, core: true},
		{name: "projected-settings-removed", pod: []change{projected("cast")}, prepare: create("configmap", "cast", literal), fault: drop("configmap", "cast"),
			reason: v1alpha1.ReasonObjectMissing, want: staysDown},
		{name: "class-removed", pod: []change{class("removed")}, prepare: runtimeClass("removed"), fault: drop("runtimeclass", "removed"),
			reason: v1alpha1.ReasonObjectMissing, want: staysDown},
		{name: "class-kept", pod: []change{class("kept")}, prepare: runtimeClass("kept"), want: comesBack},
		// Attached to this node alone, and perhaps to another one meanwhile.
		{name: "volume-of-one-node", pod: []change{claim("held")}, prepare: attachable("held"), reason: v1alpha1.ReasonAttachedVolumeNotSynced, want: staysDown},
		// What was issued for it is replayed.
		{name: "account-removed", pod: []change{account("leaver")}, prepare: create("serviceaccount", "leaver"), fault: drop("serviceaccount", "leaver"),
			want: comesBack},

		// Images.
		{name: "image-removed", pod: []change{image("example.com/removed:1")}, prepare: tag("example.com/removed:1"), fault: untag("example.com/removed:1"),
			reason: v1alpha1.ReasonImageMissing, want: staysDown, core: true},
		{name: "other-name-removed", prepare: tag("example.com/spare:1"), fault: untag("example.com/spare:1"), want: comesBack},
		{name: "init-image-removed", pod: []change{before("example.com/init:1")}, prepare: tag("example.com/init:1"), fault: untag("example.com/init:1"),
			reason: v1alpha1.ReasonImageMissing, want: staysDown},
		{name: "sidecar-image-removed", pod: []change{beside("example.com/sidecar:1")}, prepare: tag("example.com/sidecar:1"), fault: untag("example.com/sidecar:1"),
			reason: v1alpha1.ReasonImageMissing, want: staysDown},
		{name: "always-with-the-image-here", pod: []change{image(registryName + "/always:1"), pulls(corev1.PullAlways)}, prepare: push("always"), want: comesBack},
		{name: "configuration-emptied", pod: []change{image("example.com/emptied:1")}, prepare: own("example.com/emptied:1"), fault: emptyConfiguration("example.com/emptied:1"),
			reason: v1alpha1.ReasonImageDamaged, want: staysDown},
		{name: "pull-secret-kept", pod: []change{image(registryName + "/private/kept:1"), pullSecret("robot-kept")}, prepare: steps(push("private/kept"), robot("robot-kept", password)), want: comesBack},
		{name: "pull-secret-made-anew", pod: []change{image(registryName + "/private/anew:1"), pullSecret("robot-anew")}, prepare: steps(push("private/anew"), robot("robot-anew", password)),
			fault: steps(drop("secret", "robot-anew"), robot("robot-anew", password)), want: comesBack},
		{name: "pull-secret-of-another-robot", pod: []change{image(registryName + "/private/other:1"), pullSecret("robot-other")}, prepare: steps(push("private/other"), robot("robot-other", password)),
			fault: steps(drop("secret", "robot-other"), robot("robot-other", "let me in as well")), newest: true, reason: v1alpha1.ReasonImageCredentials, want: staysDown},

		// What cannot survive by its nature.
		{name: "directory-in-memory", pod: []change{hostPath("/run/shop", corev1.HostPathDirectory)}, prepare: onNode("mkdir -p /run/shop"),
			reason: v1alpha1.ReasonHostPathVolatile, want: staysDown, core: true},
		{name: "directory-made-in-memory", pod: []change{hostPath("/run/made", corev1.HostPathDirectoryOrCreate)}, want: comesBack},
		{name: "directory-on-disk", pod: []change{hostPath("/var/lib/shop", corev1.HostPathDirectory)}, prepare: onNode("mkdir -p /var/lib/shop"),
			want: comesBack, core: true},
		{name: "file-in-memory-that-is-kept", pod: []change{hostPath("/run/shop-kept/settings", corev1.HostPathFile)},
			prepare: onNode("mkdir -p /run/shop-kept && echo a > /run/shop-kept/settings"), want: comesBack},
		{name: "directory-of-a-service", pod: []change{hostPath("/run/shop-service", corev1.HostPathDirectory)}, prepare: runtimeDirectory("shop-service"), want: comesBack},
		{name: "directory-on-a-disk-of-fstab", pod: []change{hostPath("/listed/shop", corev1.HostPathDirectory)}, prepare: mounted("/listed", "nofail"), want: comesBack},
		{name: "directory-on-a-disk-by-hand", pod: []change{hostPath("/by-hand/shop", corev1.HostPathDirectory)}, prepare: mounted("/by-hand", "noauto"),
			reason: v1alpha1.ReasonHostPathLate, want: staysDown},
		{name: "certificate-of-a-signer", pod: []change{podCertificate}, prepare: signer, newest: true, reason: v1alpha1.ReasonPodCertificate, want: staysDown},
		{name: "device-of-a-plugin", pod: []change{asks(device)}, prepare: devicePlugin, reason: v1alpha1.ReasonDevicePlugin, want: staysDown},
		{name: "resource-without-a-plugin", pod: []change{asks(dongle)}, prepare: withoutPlugin, want: comesBack},
		{name: "runs-once", pod: []change{restarts(corev1.RestartPolicyNever)}, reason: v1alpha1.ReasonNeverRestarted, want: staysDown, core: true},
		{name: "runs-until-it-succeeds", pod: []change{restarts(corev1.RestartPolicyOnFailure)}, want: comesBack},
		{name: "finished", pod: []change{restarts(corev1.RestartPolicyNever), ends}, want: staysEnded, core: true},
	},
}

// asWritten takes from kubelet what Rekindle does for pods while they are cut off.
var asWritten = onePolicy{
	name: "as written", fields: ", snapshot: {serviceAccountTokens: Omit}, offline: {imagePullPolicy: AsWritten, attachedVolumes: Start}, " +
		"startupOrdering: {stages: [{name: first, pods: [{labelSelector: {matchLabels: {app: in-the-first-stage}}}], waitFor: Ready, timeoutSeconds: 60}, " +
		"{name: network, pods: [{labelSelector: {matchLabels: {app: in-the-second-stage}}}], waitFor: Started, timeoutSeconds: 60}]}",
	rows: []row{
		{name: "always-as-written", pod: []change{image(registryName + "/written:1"), pulls(corev1.PullAlways), noToken}, prepare: push("written"),
			reason: v1alpha1.ReasonImagePullNeeded, want: staysDown},
		{name: "if-not-present-as-written", pod: []change{noToken}, want: comesBack},
		{name: "token-omitted", reason: v1alpha1.ReasonTokensOmitted, want: staysDown},
		// The wrong way round by what it mounts: it looks like the pod network. The first waits for nothing.
		{name: "in-the-first-stage", pod: []change{noToken}, want: comesBack},
		{name: "in-the-second-stage", pod: []change{noToken, hostNetwork, hostPath("/etc/cni/net.d", corev1.HostPathDirectory)}, want: comesBack},
		{name: "volume-that-is-not-held", pod: []change{claim("let-go"), noToken}, prepare: attachable("let-go"), want: comesBack},
		{name: "no-token-wanted", pod: []change{image(images.Web), noToken}, want: comesBack},
	},
}
