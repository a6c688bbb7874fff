package gather

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"rekindle.edge/agent/readiness"
	"rekindle.edge/agent/wiring"
	"rekindle.edge/api/v1alpha1"
)

// kubeletConfig is the part of kubelet's configuration that a restart depends on.
type kubeletConfig struct {
	ShutdownGracePeriod                    metav1.Duration   `json:"shutdownGracePeriod"`
	CPUManagerPolicy                       string            `json:"cpuManagerPolicy"`
	CPUManagerPolicyOptions                map[string]string `json:"cpuManagerPolicyOptions"`
	MemoryManagerPolicy                    string            `json:"memoryManagerPolicy"`
	ServerTLSBootstrap                     bool              `json:"serverTLSBootstrap"`
	TLSCertFile                            string            `json:"tlsCertFile"`
	EvictionHard                           map[string]string `json:"evictionHard"`
	MergeDefaultEvictionSettings           bool              `json:"mergeDefaultEvictionSettings"`
	ImagePullCredentialsVerificationPolicy string            `json:"imagePullCredentialsVerificationPolicy"`
	PreloadedImagesVerificationAllowlist   []string          `json:"preloadedImagesVerificationAllowlist"`
}

// kubeletFacts are what kubelet would start with.
type kubeletFacts struct {
	config kubeletConfig
	// root is kubelet's directory, pki that of its certificates.
	root, pki string
}

// defaultConfig is where kubeadm puts it.
const defaultConfig = "/var/lib/kubelet/config.yaml"

// kubelet reads kubelet's configuration, as its command line changes it, and the files that
// it starts with.
func (g *Gatherer) kubelet(ctx context.Context, facts *readiness.Facts) kubeletFacts {
	if _, args, err := (wiring.Service{Unit: g.Settings.KubeletUnit, Units: g.Units}).Process(ctx); err == nil && args != nil {
		g.kubeletArgs = args // of one that does not run now, those of the last
	}
	flags := kubeletFlags(g.kubeletArgs)
	k := kubeletFacts{root: flags.text("root-dir", g.Settings.KubeletRootDir)}
	k.pki = flags.text("cert-dir", filepath.Join(k.root, "pki"))
	var err error
	if k.config, err = g.kubeletConfig(flags.text("config", defaultConfig), flags.text("config-dir", "")); err != nil {
		facts.Node.Kubelet.Problem = err.Error()
	}
	flags.change(&k.config)
	facts.Node.Kubelet.GracefulShutdown = k.config.ShutdownGracePeriod.Duration > 0
	facts.Node.Kubelet.Checkpoints = g.checkpoints(k)
	facts.Node.Broken = g.brokenCertificates(k)
	for i := range facts.Node.Broken {
		file := &facts.Node.Broken[i]
		// The pair that kubelet makes itself; see package kubeletpki.
		name := filepath.Base(file.Path)
		file.Mended = (name == "kubelet.crt" || name == "kubelet.key") && g.Files != nil && facts.Node.Serving.Reason != v1alpha1.ReasonObserveOnly
	}
	facts.Node.Devices = g.devices(k)
	return k
}

// kubeletConfig reads the file and, over it, the drop-ins. None is kubelet's defaults.
func (g *Gatherer) kubeletConfig(path, dir string) (kubeletConfig, error) {
	var config kubeletConfig
	paths := []string{g.Root + path}
	if dir != "" {
		dropIns, err := wiring.DropIns(g.Root + dir)
		if err != nil {
			return config, fmt.Errorf("kubelet's configuration: %w", err)
		}
		paths = append(paths, dropIns...)
	}
	for _, file := range paths {
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) && path == defaultConfig {
			continue
		}
		if err == nil {
			err = yaml.Unmarshal(data, &config)
		}
		if err != nil {
			return config, fmt.Errorf("kubelet's configuration %s: %w", strings.TrimPrefix(file, g.Root), err)
		}
	}
	return config, nil
}
