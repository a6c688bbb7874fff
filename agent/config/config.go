// Package config reads the agent's configuration file.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// DefaultPath is where the file is looked for.
const DefaultPath = "/etc/rekindle/agent.yaml"

// Config is the whole configuration of the agent. Every field may be left out.
type Config struct {
	// NodeName is the name of the Node. Unset: read from kubelet's client certificate,
	// which must have the same.
	NodeName string `json:"nodeName,omitempty"`
	// Kubeconfig is kubelet's kubeconfig. Unset: the first that exists of
	// /etc/kubernetes/kubelet.conf and /var/lib/kubelet/kubeconfig.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// CRIEndpoint is the container runtime's socket.
	CRIEndpoint string `json:"criEndpoint,omitempty"`
	// StateDir holds the agent's store. It is made, with mode 0700.
	StateDir string `json:"stateDir,omitempty"`
	// KubeletHealthz is the URL of kubelet's health endpoint.
	KubeletHealthz string `json:"kubeletHealthz,omitempty"`
	// KubeletRootDir is kubelet's --root-dir, where its sockets are.
	KubeletRootDir string `json:"kubeletRootDir,omitempty"`
	// KubeletUnit is kubelet's systemd unit.
	KubeletUnit string `json:"kubeletUnit,omitempty"`
	// ContainerdUnit is the container runtime's systemd unit; messages name it.
	ContainerdUnit string `json:"containerdUnit,omitempty"`
	// LinkLocalAddress is the IPv4 address that pods can reach the local API at.
	LinkLocalAddress string `json:"linkLocalAddress,omitempty"`
}

// Default is the configuration of an empty file.
func Default() Config {
	return Config{
		CRIEndpoint:    "unix:///run/containerd/containerd.sock",
		StateDir:       "/var/lib/rekindle",
		KubeletHealthz: "http://127.0.0.1:10248/healthz",
		KubeletRootDir: "/var/lib/kubelet",
		KubeletUnit:    "kubelet.service",
		ContainerdUnit: "containerd.service",

		LinkLocalAddress: "169.254.77.43",
	}
}

// Kubeconfigs are the files to try for kubelet's kubeconfig, in order.
func (c Config) Kubeconfigs() []string {
	if c.Kubeconfig != "" {
		return []string{c.Kubeconfig}
	}
	return []string{"/etc/kubernetes/kubelet.conf", "/var/lib/kubelet/kubeconfig"}
}

// Load reads the file. It need not exist at DefaultPath, which means the defaults; another
// was asked for. An error names the file, the field and what it must be.
func Load(path string) (Config, error) { return load(path, path == DefaultPath) }

func load(path string, mayMiss bool) (Config, error) {
	config := Default()
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && mayMiss:
		return config, nil
	case errors.Is(err, fs.ErrNotExist):
		return Config{}, fmt.Errorf("reading the configuration: %w; correct --config, or leave it out: %s may be missing, which means the defaults", err, DefaultPath)
	case err != nil:
		return Config{}, fmt.Errorf("reading the configuration: %w", err)
	}
	if err := decode(data, &config); err != nil {
		return Config{}, fmt.Errorf("%s: %w; the fields are listed in the sample agent.yaml", path, err)
	}
	if err := config.validate(); err != nil {
		return Config{}, fmt.Errorf("%s: %w", path, err)
	}
	return config, nil
}

// decode takes fields by their exact names; encoding/json would take them in any case.
func decode(data []byte, config *Config) error {
	plain, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return err
	}
	strict, err := json.UnmarshalStrict(plain, config)
	return errors.Join(append(strict, err)...)
}

func (c Config) validate() error {
	var errs []error
	bad := func(field, value, cure string) {
		errs = append(errs, fmt.Errorf("%s: %q %s", field, value, cure))
	}
	if c.NodeName != "" && len(validation.IsDNS1123Subdomain(c.NodeName)) > 0 {
		bad("nodeName", c.NodeName, "is no name of a Node; leave it out to take the name in kubelet's certificate")
	}
	if c.Kubeconfig != "" && !filepath.IsAbs(c.Kubeconfig) {
		bad("kubeconfig", c.Kubeconfig, "must be an absolute path")
	}
	if path, ok := strings.CutPrefix(c.CRIEndpoint, "unix://"); !ok || !filepath.IsAbs(path) {
		bad("criEndpoint", c.CRIEndpoint, "must be unix:// and an absolute path, as in unix:///run/containerd/containerd.sock")
	}
	if !filepath.IsAbs(c.StateDir) || filepath.Clean(c.StateDir) == "/" {
		bad("stateDir", c.StateDir, "must be an absolute path of a directory for the agent alone")
	}
	if !filepath.IsAbs(c.KubeletRootDir) {
		bad("kubeletRootDir", c.KubeletRootDir, "must be an absolute path, as in kubelet's --root-dir")
	}
	if u, err := url.Parse(c.KubeletHealthz); err != nil || u.Scheme != "http" || u.Host == "" {
		bad("kubeletHealthz", c.KubeletHealthz, "must be an http URL, as in http://127.0.0.1:10248/healthz")
	}
	for _, unit := range []struct{ field, value string }{
		{"kubeletUnit", c.KubeletUnit}, {"containerdUnit", c.ContainerdUnit},
	} {
		if !strings.HasSuffix(unit.value, ".service") || strings.Contains(unit.value, "/") {
			bad(unit.field, unit.value, "must be the name of a systemd service, as in kubelet.service")
		}
	}
	if address, err := netip.ParseAddr(c.LinkLocalAddress); err != nil || !address.Is4() || !address.IsLinkLocalUnicast() {
		bad("linkLocalAddress", c.LinkLocalAddress, "must be an IPv4 address in 169.254.0.0/16 that nothing else on the node uses")
	}
	return errors.Join(errs...)
}
