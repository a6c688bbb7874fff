package snapshot

import (
	"rekindle.edge/agent/snapshot/durable"
	"rekindle.edge/agent/snapshot/vault"
)

// Option of Open.
type Option func(*options)

type options struct {
	sealer     vault.Sealer
	checker    *durable.Checker
	kubeletDir string
	sandboxes  Sandboxes
}

// WithSealer protects the key of secrets and tokens by the machine. Without, it lies in a
// file.
func WithSealer(sealer vault.Sealer) Option { return func(o *options) { o.sealer = sealer } }

// WithChecker checks a file in another process before it is opened.
func WithChecker(checker *durable.Checker) Option { return func(o *options) { o.checker = checker } }

// WithWitnesses names who else knows the pods of this node: kubelet's directory (its root,
// usually /var/lib/kubelet) and the container runtime. The list of pods is compared with
// them before it is served.
func WithWitnesses(kubeletDir string, sandboxes Sandboxes) Option {
	return func(o *options) { o.kubeletDir, o.sandboxes = kubeletDir, sandboxes }
}
