package edgenode

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSetDefaults(t *testing.T) {
	for name, tc := range map[string]struct {
		options Options
		wantErr string
	}{
		"a name alone is enough":                 {Options{Name: "edge-1"}, ""},
		"a name is missing":                      {Options{}, "node name"},
		"a name that is no host name":            {Options{Name: "Edge_1"}, "node name"},
		"a kubelet that nobody builds":           {Options{Name: "edge-1", Kubelet: "v1.20"}, "kubelet"},
		"a name that would leave the node's dir": {Options{Name: "../x"}, "node name"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.options.setDefaults()
			if tc.wantErr == "" && err != nil || tc.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tc.wantErr)) {
				t.Errorf("error = %v, want one about %q", err, tc.wantErr)
			}
			if err == nil && (tc.options.Kubelet != KubeletNewest || tc.options.DiskMiB == 0 || tc.options.Log == nil) {
				t.Errorf("defaults are missing: %+v", tc.options)
			}
		})
	}
}

func TestEffectiveCapabilities(t *testing.T) {
	for name, tc := range map[string]struct {
		status string
		want   bool
	}{
		"all of them":              {"Name:\tx\nCapEff:\t000001ffffffffff\n", true},
		"all but CAP_SYS_RESOURCE": {"CapPrm:\t000001ffffffffff\nCapEff:\t000001fffeffffff\n", false},
		"none":                     {"CapEff:\t0000000000000000\n", false},
		"a status without the set": {"Name:\tx\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := effective(tc.status)&(1<<unix.CAP_SYS_RESOURCE) != 0; got != tc.want {
				t.Errorf("CAP_SYS_RESOURCE = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestCheckNamesEachThingThatIsMissing(t *testing.T) {
	err := Check(t.TempDir(), KubeletOldest)
	if err == nil || !strings.Contains(err.Error(), "kubelet-oldest is not built: make bin/tools/kubelet-oldest") {
		t.Errorf("error = %v", err)
	}
}
