package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// MaxNodes is how many nodes one lab's network has addresses for.
const MaxNodes = 13

// A Network is the lab's little internet: one router in a namespace of its own
// ("wan"), one link to the host and one to each node. All that the host's own
// namespace sees of it is one veth and one route.
//
// Lab i owns a /20 of 198.18.0.0/15, the range set aside for benchmarks
// (RFC 2544), which no real network routes: its first /24 holds the links (a /30
// each), the k-th /24 the pods of node k, the last one the services.
type Network struct {
	lab *Lab
}

// CreateNetwork starts the router and links it to the host. It needs root.
func (l *Lab) CreateNetwork(ctx context.Context) (*Network, error) {
	n := &Network{lab: l}
	wan, host := l.NetNS("wan"), hostLink(l.Number)
	return n, runAll(ctx,
		"ip netns add "+wan,
		"ip -n "+wan+" link set lo up",
		fmt.Sprintf("ip link add %s type veth peer name host netns %s", host, wan),
		fmt.Sprintf("ip addr add %s/30 dev %s", n.HostIP(), host),
		fmt.Sprintf("ip link set %s up", host),
		fmt.Sprintf("ip -n %s addr add %s/30 dev host", wan, n.address(0, 2)),
		"ip -n "+wan+" link set host up",
		"nsenter --net=/run/netns/"+wan+" sysctl -qw net.ipv4.ip_forward=1",
		fmt.Sprintf("ip route add %s via %s dev %s", n.prefix(), n.address(0, 2), host),
	)
}

// HostIP is the host's address as nodes and pods reach it.
func (n *Network) HostIP() netip.Addr { return n.address(0, 1) }

// ServiceCIDR is the range for cluster IPs.
func (n *Network) ServiceCIDR() netip.Prefix { return n.subnet(15) }

// NodeIP is the address of node slot 1 to MaxNodes.
func (n *Network) NodeIP(slot int) netip.Addr { return n.address(0, 4*slot+2) }

// PodCIDR is the range for the pods of a node slot.
func (n *Network) PodCIDR(slot int) netip.Prefix { return n.subnet(slot) }

// Attach gives a node's network namespace its uplink, as eth0 with a default route.
// The pair is made inside the two namespaces: an eth0 never exists in the host's.
func (n *Network) Attach(ctx context.Context, slot int, netns string) error {
	if slot < 1 || slot > MaxNodes {
		return fmt.Errorf("node slot %d: a lab has addresses for nodes 1 to %d", slot, MaxNodes)
	}
	wan, link := n.lab.NetNS("wan"), wanLink(slot)
	// The old link of a node that was powered off goes a little after its namespace.
	_, _ = Run(ctx, "ip", "-n", wan, "link", "del", link)
	return runAll(ctx,
		fmt.Sprintf("ip -n %s link add %s type veth peer name eth0 netns %s", wan, link, netns),
		fmt.Sprintf("ip -n %s addr add %s/30 dev %s", wan, n.address(0, 4*slot+1), link),
		fmt.Sprintf("ip -n %s link set %s up", wan, link),
		fmt.Sprintf("ip -n %s route add %s via %s", wan, n.PodCIDR(slot), n.NodeIP(slot)),
		"ip -n "+netns+" link set lo up",
		fmt.Sprintf("ip -n %s addr add %s/30 dev eth0", netns, n.NodeIP(slot)),
		"ip -n "+netns+" link set eth0 up",
		fmt.Sprintf("ip -n %s route add default via %s", netns, n.address(0, 4*slot+1)),
	)
}

func (n *Network) prefix() netip.Prefix {
	return netip.PrefixFrom(n.address(0, 0), 20)
}

func (n *Network) subnet(third int) netip.Prefix {
	return netip.PrefixFrom(n.address(third, 0), 24)
}

// address is byte third, last within the lab's /20.
func (n *Network) address(third, last int) netip.Addr {
	offset := n.lab.Number*16 + third
	return netip.AddrFrom4([4]byte{198, byte(18 + offset/256), byte(offset % 256), byte(last)})
}

func hostLink(number int) string { return fmt.Sprintf("rekindle%d", number) }
func wanLink(slot int) string    { return fmt.Sprintf("node%d", slot) }

// removeNetwork deletes the lab's namespaces and with them every link of it.
func removeNetwork(ctx context.Context, number int) error {
	names, err := Run(ctx, "ip", "netns", "list")
	if err != nil {
		return err
	}
	var errs []error
	for line := range strings.Lines(names) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(name, netnsPrefix(number)) {
			_, err := Run(ctx, "ip", "netns", "del", name)
			errs = append(errs, err)
		}
	}
	// The kernel takes a namespace apart in its own time; the host's link must not wait for it.
	_, _ = Run(ctx, "ip", "link", "del", hostLink(number))
	return errors.Join(errs...)
}

func runAll(ctx context.Context, commands ...string) error {
	for _, command := range commands {
		fields := strings.Fields(command)
		if _, err := Run(ctx, fields[0], fields[1:]...); err != nil {
			return err
		}
	}
	return nil
}
