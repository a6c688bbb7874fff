package edgenode

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// KubeletVersion picks one of the two kubelets of the test tools.
type KubeletVersion string

// The kubelets of the test tools; their go.mod files pin the versions.
const (
	KubeletNewest KubeletVersion = "newest"
	KubeletOldest KubeletVersion = "oldest"
)

// Options say what kind of node to make.
type Options struct {
	// Name is the Node's name, unique in the cluster.
	Name string
	// Kubelet unset means newest.
	Kubelet KubeletVersion
	// KubeProxy gives pods of this node the cluster's Services.
	KubeProxy bool
	// Logind has kubelet end its pods in an orderly shutdown: D-Bus and systemd-logind run,
	// and kubelet's shutdownGracePeriod is set.
	Logind bool
	// Labels that kubelet registers the Node with.
	Labels map[string]string
	// Agent runs rekindle-agent on the node; unset means a plain node.
	Agent *Agent
	// DiskMiB is the size of the node's disk; unset means 2048. Only what is used takes space.
	DiskMiB int
	// Log hears of each step; unset means nobody does.
	Log func(format string, args ...any)
}

// Agent is rekindle-agent as it lies on the node.
type Agent struct {
	// Binary is the file that becomes /usr/local/bin/rekindle-agent.
	Binary string
	// Units are the systemd unit files; the first one is enabled.
	Units []string
	// Config is the content of /etc/rekindle/agent.yaml.
	Config []byte
}

var nodeName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?$`)

func (o *Options) setDefaults() error {
	if !nodeName.MatchString(o.Name) {
		return fmt.Errorf("node name %q: want lower case letters, digits and dashes, at most 42", o.Name)
	}
	if o.Kubelet == "" {
		o.Kubelet = KubeletNewest
	}
	if o.Kubelet != KubeletNewest && o.Kubelet != KubeletOldest {
		return fmt.Errorf("kubelet %q: want %q or %q", o.Kubelet, KubeletNewest, KubeletOldest)
	}
	if o.DiskMiB == 0 {
		o.DiskMiB = 2048
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	return nil
}

// kubeletBinary is the path inside of the node.
func (o *Options) kubeletBinary() string {
	if o.Kubelet == KubeletOldest {
		return filepath.Join(toolsInNode, "kubelet-oldest")
	}
	return filepath.Join(toolsInNode, "kubelet")
}

func (o *Options) nodeLabels() string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(o.Labels)) {
		pairs = append(pairs, key+"="+o.Labels[key])
	}
	return strings.Join(pairs, ",")
}
