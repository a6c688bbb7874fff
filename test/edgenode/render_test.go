package edgenode

import (
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestRenderAdaptsToTheMachine(t *testing.T) {
	for name, tc := range map[string]struct {
		file             string
		settings         settings
		want, wantAbsent string
	}{
		"kubelet accepts cgroup v1 where that is what there is": {"kubelet.yaml", settings{}, "failCgroupV1: false", ""},
		"kubelet says nothing of cgroup v1 on v2":               {"kubelet.yaml", settings{CgroupV2: true}, "", "failCgroupV1"},
		"containerd leaves oom_score_adj alone where it must":   {"containerd.toml", settings{RestrictOOM: true}, "restrict_oom_score_adj = true", ""},
		"containerd names the pause image that is imported":     {"containerd.toml", settings{}, "sandbox = 'rekindle.edge/test/pause:1'", ""},
		"kubelet registers with labels":                         {"kubelet.service", settings{Labels: "a=b,c=d"}, "--node-labels=a=b,c=d ", ""},
		"kubelet without labels has no flag for them":           {"kubelet.service", settings{}, "--node-ip", "--node-labels"},
		"kubelet ends pods in a shutdown where there is logind": {"kubelet.yaml", settings{Logind: true}, "shutdownGracePeriod: 15s", ""},
		"kubelet does not hold a shutdown where there is none":  {"kubelet.yaml", settings{}, "", "shutdownGracePeriod"},
		"pods get addresses of the node's range":                {"cni.conflist", settings{PodCIDR: "198.18.1.0/24"}, `"subnet": "198.18.1.0/24"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := render(tc.file, tc.settings)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(got), tc.want) {
				t.Errorf("%s lacks %q:\n%s", tc.file, tc.want, got)
			}
			if tc.wantAbsent != "" && strings.Contains(string(got), tc.wantAbsent) {
				t.Errorf("%s has %q:\n%s", tc.file, tc.wantAbsent, got)
			}
		})
	}
}

func TestRenderedFilesParse(t *testing.T) {
	for _, file := range []string{"kubelet.yaml", "kube-proxy.yaml", "cni.conflist"} {
		t.Run(file, func(t *testing.T) {
			content, err := render(file, settings{PodCIDR: "198.18.1.0/24"})
			if err != nil {
				t.Fatal(err)
			}
			var object map[string]any
			if strings.HasSuffix(file, ".yaml") {
				err = yaml.UnmarshalStrict(content, &object)
			} else {
				err = json.Unmarshal(content, &object)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}
