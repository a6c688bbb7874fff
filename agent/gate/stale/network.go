package stale

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
)

const (
	// hostLocalDir is where host-local keeps its leases if it is not told otherwise.
	hostLocalDir = "/var/lib/cni/networks"
	// flannelFile is where flannel's daemon writes the node's range.
	flannelFile = "/run/flannel/subnet.env"
)

// A network is what pods get their addresses from: one of each pool.
type network struct {
	name  string
	dir   string // of the leases
	pools []pool
}

// A pool is a set of ranges, of which a pod gets one address.
type pool []span

type span struct {
	first, last netip.Addr
	gateway     netip.Addr
}

func (p pool) contains(address netip.Addr) bool {
	for _, s := range p {
		if s.first.Compare(address) <= 0 && address.Compare(s.last) <= 0 {
			return true
		}
	}
	return false
}

// capacity is how many pods a pool has addresses for, at most 2^30.
func (p pool) capacity() int {
	total := 0
	for _, s := range p {
		first, last := new(big.Int).SetBytes(s.first.AsSlice()), new(big.Int).SetBytes(s.last.AsSlice())
		count := new(big.Int).Add(new(big.Int).Sub(last, first), big.NewInt(1))
		if !count.IsInt64() || count.Int64() > 1<<30 {
			return 1 << 30
		}
		total += int(count.Int64())
		if (pool{s}).contains(s.gateway) {
			total--
		}
	}
	return min(total, 1<<30)
}

// The runtime's network configuration, as it says it in its verbose status.
type cniConfig struct {
	Networks []struct {
		Config struct {
			Name    string
			Plugins []struct{ Source string }
		}
	}
}

type pluginConfig struct {
	Type string     `json:"type"`
	IPAM ipamConfig `json:"ipam"`
	// Flannel's.
	SubnetFile string `json:"subnetFile"`
	Delegate   struct {
		IPAM json.RawMessage `json:"ipam"`
	} `json:"delegate"`
}

type ipamConfig struct {
	Type    string `json:"type"`
	DataDir string `json:"dataDir"`
	rangeConfig
	Ranges [][]rangeConfig `json:"ranges"`
}

type rangeConfig struct {
	Subnet     string `json:"subnet"`
	RangeStart string `json:"rangeStart"`
	RangeEnd   string `json:"rangeEnd"`
	Gateway    string `json:"gateway"`
}

// parseNetworks reads the networks that the runtime gives to pods. An error says what of
// them is not known; then nothing can be said about their ranges.
func parseNetworks(cniconfig, root string) ([]network, error) {
	var config cniConfig
	if err := json.Unmarshal([]byte(cniconfig), &config); err != nil {
		return nil, fmt.Errorf("the runtime's network configuration: %w", err)
	}
	var networks []network
	for _, n := range config.Networks {
		loopback := true
		var ipam *ipamConfig
		for _, p := range n.Config.Plugins {
			var plugin pluginConfig
			if err := json.Unmarshal([]byte(p.Source), &plugin); err != nil {
				return nil, fmt.Errorf("network %s: %w", n.Config.Name, err)
			}
			loopback = loopback && plugin.Type == "loopback"
			switch {
			case ipam != nil:
			case plugin.IPAM.Type != "":
				ipam = &plugin.IPAM
			case plugin.Type == "flannel" && len(plugin.Delegate.IPAM) == 0:
				flannel, err := flannelRanges(filepath.Join(root, orDefault(plugin.SubnetFile, flannelFile)))
				if err != nil {
					return nil, fmt.Errorf("network %s: %w", n.Config.Name, err)
				}
				ipam = flannel
			}
		}
		if loopback {
			continue
		}
		if ipam == nil || ipam.Type != "host-local" {
			return nil, fmt.Errorf("network %s: only the address plugin host-local is known", n.Config.Name)
		}
		pools, err := ipam.pools()
		if err != nil {
			return nil, fmt.Errorf("network %s: %w", n.Config.Name, err)
		}
		networks = append(networks, network{
			name: n.Config.Name, pools: pools,
			dir: filepath.Join(root, orDefault(ipam.DataDir, hostLocalDir), n.Config.Name),
		})
	}
	if len(networks) == 0 {
		return nil, errors.New("the runtime has no network for pods yet")
	}
	return networks, nil
}

// pools are the ranges of a configuration of host-local, with its defaults.
func (c ipamConfig) pools() ([]pool, error) {
	sets := c.Ranges
	if c.Subnet != "" {
		sets = append([][]rangeConfig{{c.rangeConfig}}, sets...)
	}
	var pools []pool
	for _, set := range sets {
		var p pool
		for _, r := range set {
			s, err := r.span()
			if err != nil {
				return nil, err
			}
			p = append(p, s)
		}
		pools = append(pools, p)
	}
	if len(pools) == 0 {
		return nil, errors.New("host-local has no ranges in its configuration")
	}
	return pools, nil
}

func (r rangeConfig) span() (span, error) {
	subnet, err := netip.ParsePrefix(r.Subnet)
	if err != nil {
		return span{}, err
	}
	subnet = subnet.Masked()
	s := span{first: subnet.Addr().Next(), last: lastOf(subnet), gateway: subnet.Addr().Next()}
	for _, field := range []struct {
		value string
		to    *netip.Addr
	}{{r.RangeStart, &s.first}, {r.RangeEnd, &s.last}, {r.Gateway, &s.gateway}} {
		if field.value == "" {
			continue
		}
		if *field.to, err = netip.ParseAddr(field.value); err != nil {
			return span{}, err
		}
	}
	return s, nil
}

// lastOf is the last address of a subnet that a pod can have: not IPv4's broadcast.
func lastOf(subnet netip.Prefix) netip.Addr {
	bytes := subnet.Addr().AsSlice()
	for i := subnet.Bits(); i < len(bytes)*8; i++ {
		bytes[i/8] |= 0x80 >> (i % 8)
	}
	last, _ := netip.AddrFromSlice(bytes)
	if last.Is4() {
		return last.Prev()
	}
	return last
}

// flannelRanges is what flannel's plugin tells host-local.
func flannelRanges(path string) (*ipamConfig, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the node's range of flannel: %w", err)
	}
	ipam := &ipamConfig{Type: "host-local"}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), "=")
		if name == "FLANNEL_SUBNET" || name == "FLANNEL_IPV6_SUBNET" {
			ipam.Ranges = append(ipam.Ranges, []rangeConfig{{Subnet: value}})
		}
	}
	return ipam, lines.Err()
}

func orDefault(value, unset string) string {
	if value == "" {
		return unset
	}
	return value
}
