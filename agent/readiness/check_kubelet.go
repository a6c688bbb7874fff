package readiness

import (
	"time"

	"rekindle.edge/api/v1alpha1"
)

// Kubelet rotates its certificate between 70 and 90 % of its life: one that is past that
// was not rotated.
const certificateEnding = 0.92

// ending says when a certificate is near its end.
func (c Certificate) ending() time.Time {
	return c.NotBefore.Add(time.Duration(certificateEnding * float64(c.NotAfter.Sub(c.NotBefore))))
}

func (f *findings) kubelet(facts Facts) {
	node := facts.Node
	if node.Identity != "" {
		f.node(v1alpha1.ReasonIdentityUnusable, v1alpha1.SeverityBlocksNode, "",
			"Kubelet's identity cannot be used, so kubelet cannot be served: %s", node.Identity)
	}
	if c := node.Certificate; !c.NotAfter.IsZero() && facts.Now.After(c.ending()) {
		// Kubelet starts with an expired certificate, and the local API takes it by its key.
		f.node(v1alpha1.ReasonCertificateEnding, v1alpha1.SeveritySlows, "kubelet-client",
			"Kubelet's client certificate ends at %s and was not rotated. The node comes back without it; the API server refuses the node then, until it joins anew. Are certificate requests approved?",
			c.NotAfter.UTC().Format(time.RFC3339))
	}
	for _, file := range node.Broken {
		if file.Mended {
			f.node(v1alpha1.ReasonKubeletFileEmpty, v1alpha1.SeveritySlows, file.Path,
				"%s %s: kubelet would not start with it, and the agent moves it aside at boot. Look into the kernel's log whether the disk loses writes.", file.Path, file.Why)
			continue
		}
		f.node(v1alpha1.ReasonKubeletFileEmpty, v1alpha1.SeverityBlocksNode, file.Path,
			"%s %s: kubelet would not start. Move it away, so that kubelet makes a new one, or restore it.", file.Path, file.Why)
	}
	if node.Kubelet.Problem != "" {
		f.node(v1alpha1.ReasonKubeletConfig, v1alpha1.SeverityBlocksNode, "", "Kubelet would not start: %s", node.Kubelet.Problem)
	}
	for _, file := range node.Kubelet.Checkpoints {
		f.node(v1alpha1.ReasonKubeletCheckpoint, v1alpha1.SeverityBlocksNode, file.Path,
			"%s %s: kubelet exits at its start. Drain the node, stop kubelet, remove the file, start kubelet.", file.Path, file.Why)
	}
	if node.Kubelet.GracefulShutdown {
		f.node(v1alpha1.ReasonGracefulShutdown, v1alpha1.SeveritySlows, "shutdownGracePeriod",
			"Kubelet's shutdownGracePeriod is set: pods that an orderly shutdown ends while the node is connected are Failed for good, and nobody replaces them while it is cut off. Set it to 0s.")
	}
}
