package gather

import (
	"strings"

	"rekindle.edge/agent/wiring"
)

// kubeletFlags is kubelet's command line. Of a field of the configuration that has a flag, the
// flag wins; of several, the last.
type kubeletFlags []string

// last is the last value of a flag, without its dashes.
func (f kubeletFlags) last(name string) (string, bool) {
	values := wiring.FlagValues(f, "--"+name)
	if len(values) == 0 {
		return "", false
	}
	return values[len(values)-1], true
}

func (f kubeletFlags) text(name, standard string) string {
	if value, ok := f.last(name); ok {
		return value
	}
	return standard
}

// change puts flags over what the configuration says.
func (f kubeletFlags) change(config *kubeletConfig) {
	for name, field := range map[string]*string{
		"cpu-manager-policy": &config.CPUManagerPolicy, "memory-manager-policy": &config.MemoryManagerPolicy,
		"tls-cert-file": &config.TLSCertFile,
	} {
		*field = f.text(name, *field)
	}
	for name, field := range map[string]struct {
		into      *map[string]string
		separator string
	}{
		"cpu-manager-policy-options": {&config.CPUManagerPolicyOptions, "="}, "eviction-hard": {&config.EvictionHard, "<"},
	} {
		// Each use adds to those before it, and all of them replace the field.
		if values := wiring.FlagValues(f, "--"+name); len(values) > 0 {
			*field.into = pairs(values, field.separator)
		}
	}
	for _, arg := range f {
		if name, value, joined := strings.Cut(arg, "="); name == "--rotate-server-certificates" {
			config.ServerTLSBootstrap = !joined || value == "true"
		}
	}
}

func pairs(values []string, separator string) map[string]string {
	all := map[string]string{}
	for _, value := range values {
		for pair := range strings.SplitSeq(value, ",") {
			if key, content, ok := strings.Cut(pair, separator); ok {
				all[strings.TrimSpace(key)] = strings.TrimSpace(content)
			}
		}
	}
	return all
}
