package host

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
)

// Systemd asks PID 1 over its private socket: that works before, after and without a
// D-Bus daemon.
type Systemd struct{ kept kept[*dbus.Conn] }

// linger is how long a connection is kept for the next question. Whoever has one is told of
// every change of every unit, several for each mount of a pod's volume: while a node comes
// back that is a tenth of what the agent does, and as much for systemd.
const linger = 200 * time.Millisecond

// MainPID is the main process of a service unit, 0 while it has none.
func (s *Systemd) MainPID(ctx context.Context, unit string) (int, error) {
	var pid int
	err := s.with(ctx, func(conn *dbus.Conn) error {
		property, err := conn.GetServicePropertyContext(ctx, unit, "MainPID")
		if err != nil {
			return err
		}
		value, ok := property.Value.Value().(uint32)
		if !ok {
			return fmt.Errorf("MainPID has type %T", property.Value.Value())
		}
		pid = int(value)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("asking systemd for the main process of %s: %w", unit, err)
	}
	return pid, nil
}

// Stopping says whether the whole system is shutting down or rebooting.
func (s *Systemd) Stopping(ctx context.Context) (bool, error) {
	var state string
	err := s.with(ctx, func(conn *dbus.Conn) error {
		var err error
		state, err = conn.GetManagerProperty("SystemState")
		return err
	})
	if err != nil {
		return false, fmt.Errorf("asking systemd for the state of the system: %w", err)
	}
	// The value comes as a D-Bus literal, with its quotes.
	return strings.Trim(state, `"`) == "stopping", nil
}

// InitStarted is when the first user-space program was started, as time since kernel start:
// that of the initrd, or systemd itself.
func (s *Systemd) InitStarted(ctx context.Context) (time.Duration, error) {
	var started time.Duration
	err := s.with(ctx, func(conn *dbus.Conn) error {
		for _, name := range []string{"InitRDTimestampMonotonic", "UserspaceTimestampMonotonic"} {
			text, err := conn.GetManagerProperty(name)
			if err != nil {
				return err
			}
			// The value comes as a D-Bus literal, with its type: "@t 1234567". There was
			// no suspend yet, so the monotonic clock is that of the time since boot.
			microseconds, err := strconv.ParseInt(strings.TrimPrefix(text, "@t "), 10, 64)
			if err != nil {
				return fmt.Errorf("%s is %s: %w", name, text, err)
			}
			if microseconds > 0 {
				started = time.Duration(microseconds) * time.Microsecond
				return nil
			}
		}
		return errors.New("it gives no start of user space")
	})
	if err != nil {
		return 0, fmt.Errorf("asking systemd for its start: %w", err)
	}
	return started, nil
}

// Close drops the connection; the next call makes a new one.
func (s *Systemd) Close() { s.kept.Close() }

// with calls f with a connection, which is dropped if f fails: systemd closes it when it
// re-executes itself.
func (s *Systemd) with(ctx context.Context, f func(*dbus.Conn) error) error {
	return s.kept.with(func() (*dbus.Conn, error) {
		// The connection outlives this call, so it must not end with its context.
		return dbus.NewSystemdConnectionContext(context.WithoutCancel(ctx))
	}, linger, f)
}
