package edgenode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"rekindle.edge/test/cluster"
	"rekindle.edge/test/internal/lab"
)

// A WANMode is a way in which the node's uplink is gone.
type WANMode = lab.WANMode

// The modes of CutWAN, see package lab.
const (
	WANBlackhole = lab.WANBlackhole
	WANRefused   = lab.WANRefused
	WANLinkDown  = lab.WANLinkDown
	WANNoRoute   = lab.WANNoRoute
)

// ErrOff is what needs a running node says about one that is off.
var ErrOff = errors.New("the node is off: call Boot first")

// A Node is one edge node, on or off.
type Node struct {
	Name string

	cluster *cluster.Cluster
	options Options
	slot    int
	dir     string
	wan     WANMode
	boots   int
	boot    *Boot
}

// New makes a node that is off: its disk, its credentials, its configuration.
func New(ctx context.Context, c *cluster.Cluster, options Options) (*Node, error) {
	if err := options.setDefaults(); err != nil {
		return nil, err
	}
	if err := Check(c.Tools(), options.Kubelet); err != nil {
		return nil, err
	}
	if c.Network() == nil {
		return nil, errors.New("the cluster has no network for nodes: start it with Options.Nodes")
	}
	n := &Node{
		Name: options.Name, cluster: c, options: options, slot: c.NextNodeSlot(),
		dir: filepath.Join(c.Lab().Dir, "nodes", options.Name),
	}
	if n.slot > lab.MaxNodes {
		return nil, fmt.Errorf("node %s is number %d; a cluster has room for %d", n.Name, n.slot, lab.MaxNodes)
	}
	if err := os.MkdirAll(filepath.Dir(n.dir), 0o755); err != nil {
		return nil, err
	}
	if err := os.Mkdir(n.dir, 0o755); err != nil {
		return nil, fmt.Errorf("node %s: %w", n.Name, err)
	}
	if err := n.writeBootFiles(); err != nil {
		return nil, err
	}
	return n, n.createDisk(ctx)
}

// IP is the node's address.
func (n *Node) IP() netip.Addr { return n.cluster.Network().NodeIP(n.slot) }

// Current is the boot that runs; nil while the node is off.
func (n *Node) Current() *Boot { return n.boot }

// CutWAN takes the node's uplink away, now and in later boots.
func (n *Node) CutWAN(ctx context.Context, mode WANMode) error {
	return n.setWAN(ctx, mode)
}

// RestoreWAN gives the uplink back.
func (n *Node) RestoreWAN(ctx context.Context) error {
	return n.setWAN(ctx, lab.WANUp)
}

func (n *Node) setWAN(ctx context.Context, mode WANMode) error {
	if mode == n.wan {
		return nil
	}
	n.options.Log("%s: WAN %s", n.Name, cmp.Or(string(mode), "restored"))
	if n.boot != nil {
		if err := n.cluster.Network().SetWAN(ctx, n.slot, n.netns(), mode); err != nil {
			return err
		}
	}
	n.wan = mode
	return nil
}

func (n *Node) netns() string { return n.cluster.Lab().NetNS("node-" + n.Name) }

// cgroup is the node's folder in every hierarchy.
func (n *Node) cgroup() string { return filepath.Join(n.cluster.Lab().CgroupName(), n.Name) }

func (n *Node) settings() settings {
	return settings{
		Name: n.Name, NodeIP: n.IP().String(), PodCIDR: n.cluster.Network().PodCIDR(n.slot).String(),
		Kubelet: n.options.kubeletBinary(), Labels: n.options.nodeLabels(),
		CgroupV2: cgroupV2(), RestrictOOM: restrictOOM(),
		Logind: n.options.Logind,
	}
}

// WANModes are the ways to cut an uplink.
func WANModes() []WANMode { return lab.WANModes() }
