package lab

import (
	"net/netip"
	"testing"
)

func TestAddresses(t *testing.T) {
	benchmarkRange := netip.MustParsePrefix("198.18.0.0/15")
	taken := map[netip.Prefix]bool{}
	for number := range maxLabs {
		n := &Network{lab: &Lab{Number: number}}
		ranges := []netip.Prefix{netip.PrefixFrom(n.HostIP(), 30).Masked(), n.ServiceCIDR()}
		for slot := 1; slot <= MaxNodes; slot++ {
			ranges = append(ranges, netip.PrefixFrom(n.NodeIP(slot), 30).Masked(), n.PodCIDR(slot))
		}
		for _, r := range ranges {
			if !benchmarkRange.Overlaps(r) || !n.prefix().Contains(r.Addr()) {
				t.Errorf("lab %d: %s lies outside of %s", number, r, n.prefix())
			}
			if taken[r] {
				t.Errorf("lab %d: %s is given twice", number, r)
			}
			taken[r] = true
		}
	}
	for a := range taken {
		for b := range taken {
			if a != b && a.Overlaps(b) {
				t.Errorf("%s overlaps %s", a, b)
			}
		}
	}
}
