package localapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Port of the local API, and the address that kubelet uses.
const (
	Port     = 7443
	Loopback = "127.0.0.1"
)

// Hosts are the names and addresses of the local API, with its link-local address.
func Hosts(linkLocal string) []string { return []string{Loopback, linkLocal, "localhost"} }

// Listen opens the local API's sockets, on the loopback and the link-local address, but
// for those that the agent was given. A socket on an address that the node does not have
// yet works once it has it.
func Listen(ctx context.Context, given []net.Listener, linkLocal string) ([]net.Listener, error) {
	listeners := map[string]net.Listener{}
	for _, listener := range given {
		listeners[listener.Addr().String()] = listener
	}
	config := net.ListenConfig{Control: freeBind}
	var errs []error
	for _, host := range []string{Loopback, linkLocal} {
		address := net.JoinHostPort(host, strconv.Itoa(Port))
		if listeners[address] != nil {
			continue
		}
		listener, err := config.Listen(ctx, "tcp", address)
		if err != nil {
			errs = append(errs, fmt.Errorf("local API: %w", err))
			continue
		}
		listeners[address] = listener
	}
	all := make([]net.Listener, 0, len(listeners))
	for _, listener := range listeners {
		all = append(all, listener)
	}
	return all, errors.Join(errs...)
}

func freeBind(_, _ string, conn syscall.RawConn) error {
	var err error
	controlErr := conn.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_FREEBIND, 1)
	})
	return errors.Join(controlErr, err)
}
