package readiness

import (
	"time"

	"rekindle.edge/api/v1alpha1"
)

// A certificate that is renewed is renewed before 92 % of its life are over: kubelet does so
// between 70 and 90 %. What is left then is taken for a fault, but never more than careTime
// of it; and the last endTime of it is too little to be cut off.
const (
	lastPart = 0.08
	careTime = 30 * 24 * time.Hour
	endTime  = 24 * time.Hour
)

// last says when the last part of a certificate's life begins, which is no longer than limit.
func (c Certificate) last(limit time.Duration) time.Time {
	part := time.Duration(lastPart * float64(c.NotAfter.Sub(c.NotBefore)))
	return c.NotAfter.Add(-min(part, limit))
}

// certificates finds what keeps the node out of its cluster when it was cut off for longer
// than they are valid: its pods come back, since the local API knows kubelet by its key.
func (f *findings) certificates(facts Facts) {
	for _, c := range []struct {
		Certificate
		object, what, cure string
	}{
		{facts.Node.Certificate, "kubelet-client", "Kubelet's client certificate", "Are certificate requests approved (kubectl get csr)?"},
		{facts.Node.Authority, "cluster-ca", "The CA of the API server in kubelet's kubeconfig", "Renew it, and the kubeconfig."},
	} {
		if c.NotAfter.IsZero() || facts.Now.Before(c.last(careTime)) {
			continue
		}
		ends := c.NotAfter.UTC().Format(time.RFC3339)
		if facts.Now.Before(c.last(endTime)) {
			f.node(v1alpha1.ReasonCertificateEnding, v1alpha1.SeveritySlows, c.object,
				"%s ends at %s and was not renewed. A node that is cut off then gets its pods back, and does not join its cluster again by itself. %s", c.what, ends, c.cure)
			continue
		}
		f.node(v1alpha1.ReasonCertificateEnding, v1alpha1.SeverityBlocksNode, c.object,
			"%s ends at %s: a node that is cut off until then gets its pods back, and stays out of its cluster when the link is back. %s", c.what, ends, c.cure)
	}
}

func (f *findings) kubelet(facts Facts) {
	node := facts.Node
	if node.Identity != "" {
		f.node(v1alpha1.ReasonIdentityUnusable, v1alpha1.SeverityBlocksNode, "",
			"Kubelet's identity cannot be used, so kubelet cannot be served: %s", node.Identity)
	}
	f.certificates(facts)
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
