package wiring

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	runtimeFlag   = "--container-runtime-endpoint"
	configFlag    = "--config"
	configDirFlag = "--config-dir"
	// runtimeDefault is kubelet's, since it has a default.
	runtimeDefault = "unix:///run/containerd/containerd.sock"
)

// RuntimeMatches says whether a kubelet with these arguments would use the container
// runtime at endpoint if it were not for the agent: the gate stands in front of that one.
// An error names both, and what to do. Files that cannot be read decide nothing: kubelet
// does not start with them either.
func (h Hook) RuntimeMatches(args []string, endpoint string) error {
	own, source, err := h.runtimeEndpoint(args)
	if err == nil && socketPath(own) != socketPath(endpoint) {
		return fmt.Errorf("kubelet uses the container runtime at %s (%s), and the agent the one at %s; name kubelet's as criEndpoint in /etc/rekindle/agent.yaml", own, source, endpoint)
	}
	return nil
}

// runtimeEndpoint is what kubelet's own arguments and files say, and which of them does.
func (h Hook) runtimeEndpoint(args []string) (endpoint, source string, err error) {
	// Flags win over files, the last flag over the others.
	for _, value := range slices.Backward(FlagValues(args, runtimeFlag)) {
		if value != "unix://"+h.CRISocket() {
			return value, runtimeFlag, nil
		}
	}
	endpoint, source = runtimeDefault, "kubelet's default"
	var files []string
	if values := FlagValues(args, configFlag); len(values) > 0 {
		files = append(files, values[len(values)-1])
	}
	if values := FlagValues(args, configDirFlag); len(values) > 0 {
		more, err := DropIns(values[len(values)-1])
		if err != nil {
			return "", "", err
		}
		files = append(files, more...)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return "", "", err
		}
		var config struct {
			ContainerRuntimeEndpoint string `json:"containerRuntimeEndpoint"`
		}
		if err := yaml.Unmarshal(content, &config); err != nil {
			return "", "", fmt.Errorf("%s: %w", file, err)
		}
		if config.ContainerRuntimeEndpoint != "" {
			endpoint, source = config.ContainerRuntimeEndpoint, "containerRuntimeEndpoint in "+file
		}
	}
	return endpoint, source, nil
}

// DropIns are the files of kubelet's --config-dir, in the order in which it reads them.
func DropIns(dir string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Ext(path) == ".conf" {
			files = append(files, path)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return files, nil
}

// FlagValues are the values that a flag is given on a command line, in their order.
func FlagValues(args []string, name string) []string {
	var values []string
	for i, arg := range args {
		if value, ok := strings.CutPrefix(arg, name+"="); ok {
			values = append(values, value)
		} else if arg == name && i+1 < len(args) {
			values = append(values, args[i+1])
		}
	}
	return values
}

// socketPath of an endpoint; two paths of one socket, as through /var/run, are the same.
func socketPath(endpoint string) string {
	path := strings.TrimPrefix(endpoint, "unix://")
	if real, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(real, filepath.Base(path))
	}
	return filepath.Clean(path)
}
