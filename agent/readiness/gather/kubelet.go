package gather

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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

type kubeletFacts struct{ config kubeletConfig }

// defaultConfig is where kubeadm puts it.
const defaultConfig = "/var/lib/kubelet/config.yaml"

// kubelet reads kubelet's configuration and the files that it starts with.
func (g *Gatherer) kubelet(ctx context.Context, facts *readiness.Facts) kubeletFacts {
	path, dir := g.kubeletFlags(ctx)
	config, err := g.kubeletConfig(path, dir)
	if err != nil {
		facts.Node.Kubelet.Problem = err.Error()
	}
	k := kubeletFacts{config}
	facts.Node.Kubelet.GracefulShutdown = config.ShutdownGracePeriod.Duration > 0
	facts.Node.Kubelet.Checkpoints = g.checkpoints(config)
	facts.Node.Broken = g.brokenCertificates(config)
	for i := range facts.Node.Broken {
		file := &facts.Node.Broken[i]
		// The pair that kubelet makes itself; see package kubeletpki.
		name := filepath.Base(file.Path)
		file.Mended = (name == "kubelet.crt" || name == "kubelet.key") && g.Files != nil && facts.Node.Serving.Reason != v1alpha1.ReasonObserveOnly
	}
	facts.Node.Devices = g.devices()
	return k
}

// kubeletFlags are --config and --config-dir of the kubelet that runs.
func (g *Gatherer) kubeletFlags(ctx context.Context) (config, dir string) {
	config = defaultConfig
	_, args, err := wiring.Service{Unit: g.Settings.KubeletUnit, Units: g.Units}.Process(ctx)
	if err != nil {
		return config, ""
	}
	for i, arg := range args {
		name, value, joined := strings.Cut(arg, "=")
		if !joined && i+1 < len(args) {
			value = args[i+1]
		}
		switch name {
		case "--config":
			config = value
		case "--config-dir":
			dir = value
		}
	}
	return config, dir
}

// kubeletConfig reads the file and, over it, the drop-ins. None is kubelet's defaults.
func (g *Gatherer) kubeletConfig(path, dir string) (kubeletConfig, error) {
	var config kubeletConfig
	paths := []string{path}
	if dir != "" {
		dropIns, _ := filepath.Glob(filepath.Join(g.Root+dir, "*.conf")) // the pattern is sound
		slices.Sort(dropIns)
		for _, dropIn := range dropIns {
			paths = append(paths, strings.TrimPrefix(dropIn, g.Root))
		}
	}
	for _, path := range paths {
		data, err := os.ReadFile(g.Root + path)
		if errors.Is(err, fs.ErrNotExist) && path == defaultConfig {
			continue
		}
		if err == nil {
			err = yaml.Unmarshal(data, &config)
		}
		if err != nil {
			return config, fmt.Errorf("kubelet's configuration %s: %w", path, err)
		}
	}
	return config, nil
}
