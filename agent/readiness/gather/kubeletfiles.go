package gather

import (
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/utils/cpuset"

	"rekindle.edge/agent/readiness"
)

// checkpoints are files with which kubelet exits at its start.
func (g *Gatherer) checkpoints(k kubeletFacts) []readiness.BrokenFile {
	config := k.config
	var broken []readiness.BrokenFile
	policy := func(configured, standard string) string {
		if configured == "" {
			return standard
		}
		return configured
	}
	for _, file := range []struct{ name, policy string }{
		{"cpu_manager_state", policy(config.CPUManagerPolicy, "none")},
		{"memory_manager_state", policy(config.MemoryManagerPolicy, "None")},
		{"allocated_pods_state", ""}, {"actuated_pods_state", ""}, {"dra_manager_state", ""},
	} {
		path := filepath.Join(k.root, file.name)
		data, err := os.ReadFile(g.Root + path)
		if err != nil {
			continue // none, and kubelet makes one
		}
		var state struct {
			PolicyName    string                       `json:"policyName"`
			DefaultCPUSet string                       `json:"defaultCpuSet"`
			Entries       map[string]map[string]string `json:"entries"`
		}
		switch err := json.Unmarshal(data, &state); {
		case len(data) == 0:
			broken = append(broken, readiness.BrokenFile{Path: path, Why: "is empty"})
		case err != nil && !isTypeError(err):
			broken = append(broken, readiness.BrokenFile{Path: path, Why: "is damaged"})
		case file.policy != "" && state.PolicyName != file.policy:
			broken = append(broken, readiness.BrokenFile{Path: path, Why: fmt.Sprintf("is of the policy %q and the configuration says %q", state.PolicyName, file.policy)})
		case file.name == "cpu_manager_state" && file.policy == "static" && config.CPUManagerPolicyOptions["strict-cpu-reservation"] != "true":
			if !g.sameCPUs(state.DefaultCPUSet, state.Entries) {
				broken = append(broken, readiness.BrokenFile{Path: path, Why: "is of other processors than the machine has"})
			}
		}
	}
	return broken
}

// isTypeError: memory manager entries are of another type than those read here.
func isTypeError(err error) bool { return errors.As(err, new(*json.UnmarshalTypeError)) }

func (g *Gatherer) sameCPUs(rest string, entries map[string]map[string]string) bool {
	all, err := cpuset.Parse(rest)
	if err != nil {
		return false
	}
	for _, containers := range entries {
		for _, text := range containers {
			set, err := cpuset.Parse(text)
			if err != nil {
				return false
			}
			all = all.Union(set)
		}
	}
	online, err := os.ReadFile(g.Root + "/sys/devices/system/cpu/online")
	if err != nil {
		return true
	}
	present, err := cpuset.Parse(strings.TrimSpace(string(online)))
	return err != nil || all.IsEmpty() || all.Equals(present)
}

// brokenCertificates are key pairs that are there and cannot be read: kubelet exits.
func (g *Gatherer) brokenCertificates(k kubeletFacts) []readiness.BrokenFile {
	config, pki := k.config, k.pki
	pairs := []struct{ certificate, key string }{{"kubelet-client-current.pem", "kubelet-client-current.pem"}}
	switch {
	case config.ServerTLSBootstrap:
		pairs = append(pairs, struct{ certificate, key string }{"kubelet-server-current.pem", "kubelet-server-current.pem"})
	case config.TLSCertFile == "":
		pairs = append(pairs, struct{ certificate, key string }{"kubelet.crt", "kubelet.key"})
	}
	var broken []readiness.BrokenFile
	for _, pair := range pairs {
		certificate, errCertificate := os.ReadFile(g.Root + filepath.Join(pki, pair.certificate))
		key, errKey := os.ReadFile(g.Root + filepath.Join(pki, pair.key))
		if errCertificate != nil || errKey != nil {
			continue // kubelet makes both when one is missing
		}
		why, file := "", pair.certificate
		switch _, err := tls.X509KeyPair(certificate, key); {
		case len(certificate) == 0:
			why = "is empty"
		case len(key) == 0:
			why, file = "is empty", pair.key
		case err == nil:
			continue
		case firstBlock(certificate) == nil:
			why = "has no certificate in it"
		default:
			why = "does not fit its key, or is damaged"
		}
		broken = append(broken, readiness.BrokenFile{Path: filepath.Join(pki, file), Why: why})
	}
	return broken
}

func firstBlock(data []byte) *pem.Block {
	block, _ := pem.Decode(data)
	return block
}

// devices are the resources whose plugins kubelet knows.
func (g *Gatherer) devices(k kubeletFacts) []string {
	data, err := os.ReadFile(g.Root + filepath.Join(k.root, "device-plugins/kubelet_internal_checkpoint"))
	if err != nil {
		return nil
	}
	var checkpoint struct {
		Data struct {
			RegisteredDevices map[string][]string
		}
	}
	if json.Unmarshal(data, &checkpoint) != nil {
		return nil
	}
	var names []string
	for name := range checkpoint.Data.RegisteredDevices {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
