package localapi

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// AddAddress puts an IPv4 address on the loopback interface, as a /32: no route to any
// other address comes with it. An address that is there is left.
func AddAddress(address netip.Addr) error {
	err := changeAddress(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_EXCL, address)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("adding %s to the loopback interface: %w", address, err)
	}
	return nil
}

// RemoveAddress undoes AddAddress.
func RemoveAddress(address netip.Addr) error {
	err := changeAddress(unix.RTM_DELADDR, 0, address)
	if err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
		return fmt.Errorf("removing %s from the loopback interface: %w", address, err)
	}
	return nil
}

// changeAddress sends one rtnetlink(7) request and reads its acknowledgement.
func changeAddress(kind, flags uint16, address netip.Addr) error {
	if !address.Is4() {
		return errors.New("not an IPv4 address")
	}
	loopback, err := net.InterfaceByName("lo")
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	request, err := addressRequest(kind, flags|unix.NLM_F_REQUEST|unix.NLM_F_ACK, uint32(loopback.Index), address)
	if err != nil {
		return err
	}
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return err
	}
	var ack struct {
		unix.NlMsghdr
		Error int32
	}
	if err := binary.Read(bytes.NewReader(answer[:n]), binary.NativeEndian, &ack); err != nil {
		return err
	}
	if ack.Type == unix.NLMSG_ERROR && ack.Error != 0 {
		return unix.Errno(-ack.Error)
	}
	return nil
}

func addressRequest(kind, flags uint16, index uint32, address netip.Addr) ([]byte, error) {
	type attribute struct {
		unix.RtAttr
		Address [4]byte
	}
	message := struct {
		unix.NlMsghdr
		unix.IfAddrmsg
		Local, Address attribute
	}{
		NlMsghdr:  unix.NlMsghdr{Type: kind, Flags: flags},
		IfAddrmsg: unix.IfAddrmsg{Family: unix.AF_INET, Prefixlen: 32, Scope: unix.RT_SCOPE_HOST, Index: index},
		Local:     attribute{unix.RtAttr{Len: 8, Type: unix.IFA_LOCAL}, address.As4()},
		Address:   attribute{unix.RtAttr{Len: 8, Type: unix.IFA_ADDRESS}, address.As4()},
	}
	message.Len = uint32(binary.Size(message))
	var buffer bytes.Buffer
	err := binary.Write(&buffer, binary.NativeEndian, message)
	return buffer.Bytes(), err
}
