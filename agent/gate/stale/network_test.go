package stale

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// cni is a runtime's configuration of one network beside the loopback.
func cni(t *testing.T, name string, plugins ...string) string {
	t.Helper()
	type plugin struct{ Source string }
	type network struct {
		Config struct {
			Name    string
			Plugins []plugin
		}
	}
	var loopback, n network
	loopback.Config.Name = "cni-loopback"
	loopback.Config.Plugins = []plugin{{`{"type":"loopback"}`}}
	n.Config.Name = name
	for _, p := range plugins {
		n.Config.Plugins = append(n.Config.Plugins, plugin{p})
	}
	networks := []network{loopback}
	if name != "" {
		networks = append(networks, n)
	}
	raw, err := json.Marshal(map[string]any{"PluginConfDir": "/etc/cni/net.d", "Networks": networks})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

const portmap = `{"type":"portmap","capabilities":{"portMappings":true}}`

func TestParseNetworks(t *testing.T) {
	type want struct {
		Name, Dir  string
		Capacities []int
	}
	cases := map[string]struct {
		name    string
		plugins []string
		flannel string
		want    []want
		wantErr bool
	}{
		"a subnet has all addresses but its own, the gateway and the broadcast": {
			name: "pods", plugins: []string{`{"type":"bridge","ipam":{"type":"host-local","ranges":[[{"subnet":"10.1.2.0/24"}]]}}`, portmap},
			want: []want{{"pods", "/var/lib/cni/networks/pods", []int{253}}},
		},
		"the short form of a range counts as a set of its own": {
			name: "pods", plugins: []string{`{"type":"bridge","ipam":{"type":"host-local","subnet":"10.1.2.64/27","ranges":[[{"subnet":"fd00::/64"}]]}}`},
			want: []want{{"pods", "/var/lib/cni/networks/pods", []int{29, 1 << 30}}},
		},
		"a range within a subnet, without the gateway in it": {
			name: "pods", plugins: []string{`{"type":"ptp","ipam":{"type":"host-local","dataDir":"/run/leases","ranges":[[{"subnet":"10.1.2.0/24","rangeStart":"10.1.2.10","rangeEnd":"10.1.2.19","gateway":"10.1.2.254"}]]}}`},
			want: []want{{"pods", "/run/leases/pods", []int{10}}},
		},
		"several ranges of one set add up": {
			name: "pods", plugins: []string{`{"type":"bridge","ipam":{"type":"host-local","ranges":[[{"subnet":"10.1.2.0/28"},{"subnet":"10.1.3.0/28"}]]}}`},
			want: []want{{"pods", "/var/lib/cni/networks/pods", []int{26}}},
		},
		"flannel hands its node's range to host-local": {
			name: "cbr0", plugins: []string{`{"type":"flannel","delegate":{"hairpinMode":true}}`, portmap},
			flannel: "FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.7.1/24\nFLANNEL_MTU=1450\n",
			want:    []want{{"cbr0", "/var/lib/cni/networks/cbr0", []int{253}}},
		},
		"flannel's range is not there yet":         {name: "cbr0", plugins: []string{`{"type":"flannel"}`}, wantErr: true},
		"flannel with addresses of another kind":   {name: "cbr0", plugins: []string{`{"type":"flannel","delegate":{"ipam":{"type":"dhcp"}}}`}, wantErr: true},
		"another address plugin":                   {name: "k8s-pod-network", plugins: []string{`{"type":"calico","ipam":{"type":"calico-ipam"}}`}, wantErr: true},
		"no address plugin at all":                 {name: "cilium", plugins: []string{`{"type":"cilium-cni"}`}, wantErr: true},
		"a range that cannot be read":              {name: "pods", plugins: []string{`{"type":"bridge","ipam":{"type":"host-local","subnet":"10.1.2.0"}}`}, wantErr: true},
		"host-local without ranges":                {name: "pods", plugins: []string{`{"type":"bridge","ipam":{"type":"host-local"}}`}, wantErr: true},
		"no network but the loopback is there yet": {wantErr: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if tc.flannel != "" {
				write(t, filepath.Join(root, flannelFile), tc.flannel)
			}
			networks, err := parseNetworks(cni(t, tc.name, tc.plugins...), root)
			if (err != nil) != tc.wantErr {
				t.Fatalf("error %v, want one: %t", err, tc.wantErr)
			}
			var got []want
			for _, n := range networks {
				w := want{Name: n.name, Dir: n.dir[len(root):]}
				for _, p := range n.pools {
					w.Capacities = append(w.Capacities, p.capacity())
				}
				got = append(got, w)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("networks (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPoolContains(t *testing.T) {
	networks, err := parseNetworks(cni(t, "pods", `{"type":"bridge","ipam":{"type":"host-local","subnet":"10.1.2.64/27"}}`), "/")
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]bool{
		"10.1.2.64": false, "10.1.2.65": true, "10.1.2.94": true, "10.1.2.95": false, "10.1.2.63": false, "fd00::1": false,
	} {
		if got := networks[0].pools[0].contains(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %t, want %t", address, got, want)
		}
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
