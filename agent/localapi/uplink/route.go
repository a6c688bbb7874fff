package uplink

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
)

// Addresses that stand for the whole Internet where the API server has a name, which cannot
// be looked up before there is a network. Nothing is ever sent to them.
var elsewhere = []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}

// Route makes a probe of the way to a server; nil: its address is not known yet. The kernel
// is asked for its route, by a datagram socket that sends nothing, and whether the interface
// behind it has carrier: a route may outlive that.
func Route(server func() *url.URL) func() error {
	return func() error {
		address := server()
		if address == nil {
			return errors.New("the API server's address is not known yet")
		}
		to := elsewhere
		if ip, err := netip.ParseAddr(address.Hostname()); err == nil {
			to = []netip.Addr{ip}
		}
		var errs []error
		for _, ip := range to {
			err := over(ip)
			if err == nil {
				return nil
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	}
}

func over(ip netip.Addr) error {
	connection, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(ip, 443)))
	if err != nil {
		return fmt.Errorf("no route to %s: %w", ip, err)
	}
	local := connection.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
	if err := connection.Close(); err != nil {
		return err
	}
	return carrier(local)
}

// carrier looks at the interface that has an address.
func carrier(local netip.Addr) error {
	interfaces, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, i := range interfaces {
		addresses, err := i.Addrs()
		if err != nil {
			return err
		}
		for _, a := range addresses {
			prefix, err := netip.ParsePrefix(a.String())
			if err != nil || prefix.Addr().Unmap() != local.WithZone("") {
				continue
			}
			if i.Flags&net.FlagRunning == 0 {
				return fmt.Errorf("interface %s has no carrier", i.Name)
			}
			return nil
		}
	}
	// An address that no interface has is of a set-up we do not know: it was chosen by the
	// kernel, so there is a way.
	return nil
}
