package stale

import (
	"fmt"
	"net/netip"
	"testing"
)

func TestDecide(t *testing.T) {
	// A /27 has 29 addresses, of which 3 are spare.
	networks, err := parseNetworks(cni(t, "pods", `{"type":"bridge","ipam":{"type":"host-local","subnet":"10.1.2.0/27"}}`), "/")
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		unknown     bool
		stale, ours int
		expected    int
		// holds: the sandbox is the first of the stale ones; else it has no lease.
		holds, setUp bool
		want         verdict
	}{
		"a range with room for all pods beside all old leases": {stale: 12, expected: 12, holds: true, setUp: true, want: deferred},
		"as many as just fit":                                    {stale: 14, expected: 12, holds: true, want: deferred},
		"one more than fits":                                     {stale: 15, expected: 12, holds: true, want: shortRange},
		"pods that have started are not counted twice":           {stale: 12, ours: 12, expected: 12, holds: true, want: deferred},
		"more pods than were expected":                           {stale: 12, ours: 15, expected: 12, holds: true, want: shortRange},
		"a sandbox that holds nothing, while the range is short": {stale: 25, expected: 12, want: deferred},
		"a sandbox whose lease was lost in a power cut":          {stale: 2, expected: 2, setUp: true, want: lostLease},
		"a network that cannot be counted":                       {unknown: true, holds: true, want: unknownRange},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := view{expected: tc.expected, setUp: func(string) bool { return tc.setUp }}
			var leases []lease
			old := map[string]bool{}
			for i := range tc.stale + tc.ours {
				l := lease{address: netip.MustParseAddr(fmt.Sprintf("10.1.2.%d", i+2)), sandbox: fmt.Sprintf("sandbox-%d", i)}
				old[l.sandbox] = i < tc.stale
				leases = append(leases, l)
			}
			v.stale = func(l lease) bool { return old[l.sandbox] }
			if !tc.unknown {
				v.networks, v.leases = networks, [][]lease{leases}
			}
			sandbox := "another"
			if tc.holds {
				sandbox = "sandbox-0"
			}
			if got := v.decide(sandbox); got != tc.want {
				t.Errorf("verdict %q, want %q", got, tc.want)
			}
		})
	}
}

func TestFitsLooksAtEachPool(t *testing.T) {
	networks, err := parseNetworks(cni(t, "pods", `{"type":"bridge","ipam":{"type":"host-local","ranges":[[{"subnet":"fd00::/64"}],[{"subnet":"10.1.2.0/28"}]]}}`), "/")
	if err != nil {
		t.Fatal(err)
	}
	v := view{networks: networks, expected: 5, stale: func(lease) bool { return true }, leases: [][]lease{nil}}
	for i := range 6 {
		v.leases[0] = append(v.leases[0],
			lease{address: netip.MustParseAddr(fmt.Sprintf("10.1.2.%d", i+2))},
			lease{address: netip.MustParseAddr(fmt.Sprintf("fd00::%d", i+2))})
	}
	if v.fits() {
		t.Error("6 old leases, 5 pods and 3 spare fit into 13 addresses")
	}
	v.leases[0] = v.leases[0][2:]
	if !v.fits() {
		t.Error("5 old leases, 5 pods and 3 spare do not fit into 13 addresses")
	}
}
