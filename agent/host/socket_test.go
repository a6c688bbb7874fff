package host

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"testing"
)

func TestOwnsConnection(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	other := exec.Command("sleep", "60")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()

	local, remote := conn.LocalAddr().(*net.TCPAddr).AddrPort(), conn.RemoteAddr().(*net.TCPAddr).AddrPort()
	cases := map[string]struct {
		pid           int
		local, remote netip.AddrPort
		want          bool
	}{
		"this process holds its end of it": {os.Getpid(), local, remote, true},
		"another process does not":         {other.Process.Pid, local, remote, false},
		"there is no such connection":      {os.Getpid(), local, netip.AddrPortFrom(remote.Addr(), 1), false},
		"IPv6 is not looked for":           {os.Getpid(), netip.MustParseAddrPort("[::1]:1"), netip.MustParseAddrPort("[::1]:2"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Files{Root: "/"}.OwnsConnection(tc.pid, tc.local, tc.remote)
			if err != nil || got != tc.want {
				t.Errorf("got %v, %v, want %v", got, err, tc.want)
			}
		})
	}
	if _, err := (Files{Root: t.TempDir()}).OwnsConnection(1, local, remote); err == nil {
		t.Error("a process that is gone has connections")
	}
}
