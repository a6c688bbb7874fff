package scenario

import (
	"os"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"rekindle.edge/test/internal/lab"
)

// AgentBinary is the agent under test: $REKINDLE_AGENT, else what `make build-host` built.
func AgentBinary() (string, error) {
	if path := os.Getenv("REKINDLE_AGENT"); path != "" {
		return path, nil
	}
	root, err := lab.ModuleRoot()
	return filepath.Join(root, "bin", "rekindle-agent"), err
}

// Ready says whether a pod is Ready, as its status has it.
func Ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
