package gather

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFlagsGoOverTheConfiguration(t *testing.T) {
	file := kubeletConfig{CPUManagerPolicy: "static", EvictionHard: map[string]string{"nodefs.available": "10%"}, TLSCertFile: "/a.crt"}
	cases := map[string]struct {
		args []string
		want kubeletConfig
	}{
		"none": {args: []string{"kubelet", "--v=2"}, want: file},
		"the last of several, in both ways to write it": {
			args: []string{"kubelet", "--cpu-manager-policy=static", "--cpu-manager-policy", "none"},
			want: kubeletConfig{CPUManagerPolicy: "none", EvictionHard: file.EvictionHard, TLSCertFile: "/a.crt"},
		},
		"thresholds, which add up and replace the file's": {
			args: []string{"--eviction-hard=memory.available<100Mi,nodefs.available<5%", "--eviction-hard", "imagefs.available<1Gi"},
			want: kubeletConfig{CPUManagerPolicy: "static", TLSCertFile: "/a.crt", EvictionHard: map[string]string{
				"memory.available": "100Mi", "nodefs.available": "5%", "imagefs.available": "1Gi",
			}},
		},
		"options": {
			args: []string{"--cpu-manager-policy-options=strict-cpu-reservation=true,full-pcpus-only=false", "--memory-manager-policy=Static", "--tls-cert-file="},
			want: kubeletConfig{CPUManagerPolicy: "static", MemoryManagerPolicy: "Static", EvictionHard: file.EvictionHard, CPUManagerPolicyOptions: map[string]string{
				"strict-cpu-reservation": "true", "full-pcpus-only": "false",
			}},
		},
		"a switch without a value": {
			args: []string{"--rotate-server-certificates", "--v", "2"},
			want: kubeletConfig{CPUManagerPolicy: "static", TLSCertFile: "/a.crt", EvictionHard: file.EvictionHard, ServerTLSBootstrap: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := file
			kubeletFlags(tc.args).change(&got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
		})
	}
}
