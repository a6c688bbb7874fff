package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"

	"rekindle.edge/test/internal/lab"
)

// Options say what kind of cluster to start.
type Options struct {
	// Tools is the folder with the binaries; unset means $REKINDLE_TOOLS, else
	// bin/tools of this repository.
	Tools string
	// Nodes also gives the network, the controllers and the scheduler that nodes need. It needs root.
	Nodes bool
	// Log hears of each step; unset means nobody does.
	Log func(format string, args ...any)
}

// A Cluster is a running control plane.
type Cluster struct {
	lab     *lab.Lab
	network *lab.Network
	tools   string
	log     func(format string, args ...any)

	ca      *authority
	address netip.AddrPort
	etcdURL string
	api     *lab.Process
	manager *lab.Process
	slots   int
}

// Start brings the control plane up and returns when it serves.
func Start(ctx context.Context, options Options) (_ *Cluster, err error) {
	tools, err := FindTools(options.Tools)
	if err != nil {
		return nil, err
	}
	log := options.Log
	if log == nil {
		log = func(string, ...any) {}
	}
	if options.Nodes && os.Getuid() != 0 {
		return nil, errors.New("a cluster with nodes needs root: run as root, or without Options.Nodes")
	}
	l, err := lab.Open(ctx)
	if err != nil {
		return nil, err
	}
	c := &Cluster{lab: l, tools: tools, log: log}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	host := netip.MustParseAddr("127.0.0.1")
	if options.Nodes {
		if c.network, err = l.CreateNetwork(ctx); err != nil {
			return nil, err
		}
		host = c.network.HostIP()
	}
	ports, err := pickPorts(host)
	if err != nil {
		return nil, err
	}
	c.address = netip.AddrPortFrom(host, ports.api)
	if err := c.writeCredentials(); err != nil {
		return nil, err
	}
	start := time.Now()
	if err := c.startEtcd(netip.AddrPortFrom(host, ports.etcd), netip.AddrPortFrom(host, ports.etcdPeer)); err != nil {
		return nil, err
	}
	if err := c.StartAPIServer(ctx); err != nil {
		return nil, err
	}
	if options.Nodes {
		if err := c.startControllers(ctx); err != nil {
			return nil, err
		}
	}
	log("control plane serves at https://%s after %.1f s", c.address, time.Since(start).Seconds())
	return c, nil
}

// Stop ends every process of the cluster and of its nodes and removes what they left.
func (c *Cluster) Stop() error { return c.lab.Close() }

// Keep leaves cluster and nodes running after Stop and after the end of this
// process, until RemoveKept.
func (c *Cluster) Keep() error { return c.lab.Keep() }

// RemoveKept removes the clusters that Keep left running on this machine, and what
// test runs that died left behind.
func RemoveKept(ctx context.Context) error { return lab.RemoveKept(ctx) }

// Admin is the client configuration of a cluster administrator.
func (c *Cluster) Admin() *rest.Config { return c.restConfig("admin") }

// AdminKubeconfig is the file with the administrator's kubeconfig.
func (c *Cluster) AdminKubeconfig() string { return c.file("admin.kubeconfig") }

// Tools is the folder with the binaries that the cluster runs.
func (c *Cluster) Tools() string { return c.tools }

// Lab is the share of the machine that the cluster and its nodes live in.
func (c *Cluster) Lab() *lab.Lab { return c.lab }

// Network is how nodes reach the cluster; nil without Options.Nodes.
func (c *Cluster) Network() *lab.Network { return c.network }

// NextNodeSlot hands out the network's node slots, first 1.
func (c *Cluster) NextNodeSlot() int {
	c.slots++
	return c.slots
}

func (c *Cluster) file(name string) string { return filepath.Join(c.lab.Dir, "cluster", name) }

// FindTools finds the folder with the binaries that a cluster started with this
// Options.Tools would run.
func FindTools(option string) (string, error) {
	dir := option
	if dir == "" {
		dir = os.Getenv("REKINDLE_TOOLS")
	}
	if dir == "" {
		root, err := lab.ModuleRoot()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(root, "bin", "tools")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for _, tool := range []string{"etcd", "kube-apiserver"} {
		if _, err := os.Stat(filepath.Join(dir, tool)); err != nil {
			return "", fmt.Errorf("%w: build the test tools with make, or set REKINDLE_TOOLS to their folder", err)
		}
	}
	return dir, nil
}

// ports of the control plane.
type ports struct{ api, etcd, etcdPeer uint16 }

// pickPorts takes the usual ports on an address of the cluster's own, and on a
// shared one three that nothing listens on now.
func pickPorts(host netip.Addr) (ports, error) {
	if !host.IsLoopback() {
		return ports{api: 6443, etcd: 2379, etcdPeer: 2380}, nil
	}
	var picked [3]uint16
	for i := range picked {
		listener, err := net.Listen("tcp", netip.AddrPortFrom(host, 0).String())
		if err != nil {
			return ports{}, err
		}
		// Held until all are picked, or the same port may come twice.
		defer listener.Close()
		picked[i] = uint16(listener.Addr().(*net.TCPAddr).Port)
	}
	return ports{api: picked[0], etcd: picked[1], etcdPeer: picked[2]}, nil
}
