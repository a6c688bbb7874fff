package lab

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Inside runs f on a thread in another network namespace, named by its file. Sockets that f
// opens stay in it, whoever uses them later; f must not hand its work to other goroutines.
func Inside(netns string, f func() error) error {
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer home.Close()
	there, err := os.Open(netns)
	if err != nil {
		return err
	}
	defer there.Close()
	runtime.LockOSThread()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("entering %s: %w", netns, err)
	}
	err = f()
	if err := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); err != nil {
		// The thread stays locked and ends with its goroutine: nobody else may get it.
		return fmt.Errorf("leaving %s: %w", netns, err)
	}
	runtime.UnlockOSThread()
	return err
}

// DialInside dials with a socket of another network namespace.
func DialInside(netns string) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		err = Inside(netns, func() (err error) {
			conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
			return err
		})
		return conn, err
	}
}
