package lab

import (
	"context"
	"fmt"
)

// A WANMode is a way in which an uplink is gone.
type WANMode string

const (
	// WANUp is a working uplink.
	WANUp WANMode = ""
	// WANBlackhole loses every packet without a word, as a dead uplink behind a live router does.
	WANBlackhole WANMode = "blackhole"
	// WANRefused answers every packet with a TCP reset or an ICMP error.
	WANRefused WANMode = "refused"
	// WANLinkDown takes the carrier from the node's eth0.
	WANLinkDown WANMode = "linkdown"
	// WANNoRoute leaves the node without a default route.
	WANNoRoute WANMode = "noroute"
)

// WANModes are the ways to cut an uplink.
func WANModes() []WANMode {
	return []WANMode{WANBlackhole, WANRefused, WANLinkDown, WANNoRoute}
}

// SetWAN puts the uplink of an attached node into a mode, whatever it was before.
func (n *Network) SetWAN(ctx context.Context, slot int, netns string, mode WANMode) error {
	wan, link := n.lab.NetNS("wan"), wanLink(slot)
	inWAN := "nsenter --net=/run/netns/" + wan + " iptables -w "
	chain := "cut-" + link
	// The chain exists after the first cut only; both forms of an answer are right.
	_, _ = Run(ctx, "nsenter", "--net=/run/netns/"+wan, "iptables", "-w", "-N", chain)
	commands := []string{
		inWAN + "-F " + chain,
		fmt.Sprintf("ip -n %s link set %s up", wan, link),
		// Setting a link down takes its routes with it.
		fmt.Sprintf("ip -n %s route replace %s via %s", wan, n.PodCIDR(slot), n.NodeIP(slot)),
		fmt.Sprintf("ip -n %s route replace default via %s", netns, n.address(0, 4*slot+1)),
	}
	for _, direction := range []string{"-i", "-o"} {
		args := []string{"--net=/run/netns/" + wan, "iptables", "-w", "-C", "FORWARD", direction, link, "-j", chain}
		if _, err := Run(ctx, "nsenter", args...); err != nil {
			commands = append(commands, inWAN+fmt.Sprintf("-A FORWARD %s %s -j %s", direction, link, chain))
		}
	}
	switch mode {
	case WANUp:
	case WANBlackhole:
		commands = append(commands, inWAN+"-A "+chain+" -j DROP")
	case WANRefused:
		commands = append(commands,
			inWAN+"-A "+chain+" -p tcp -j REJECT --reject-with tcp-reset",
			inWAN+"-A "+chain+" -j REJECT --reject-with icmp-port-unreachable")
	case WANLinkDown:
		commands = append(commands, fmt.Sprintf("ip -n %s link set %s down", wan, link))
	case WANNoRoute:
		commands = append(commands, "ip -n "+netns+" route del default")
	default:
		return fmt.Errorf("WAN mode %q: want one of %q", mode, WANModes())
	}
	return runAll(ctx, commands...)
}
