package host

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
)

// UnitFile is how a unit is set up for the next boot.
type UnitFile struct {
	// State is enabled, disabled, masked, static and so on; empty: systemd has no file of it.
	State string
	// After are the units that it is ordered after.
	After []string
	// Wants are the units that are started with it.
	Wants []string
	// RestartPause is a service's RestartSec.
	RestartPause time.Duration
}

// UnitFile asks systemd how a unit is set up.
func (s *Systemd) UnitFile(ctx context.Context, unit string) (UnitFile, error) {
	var file UnitFile
	err := s.with(ctx, func(conn *dbus.Conn) error {
		state, err := conn.GetUnitPropertyContext(ctx, unit, "UnitFileState")
		if err != nil {
			return err
		}
		file.State, _ = state.Value.Value().(string)
		after, err := conn.GetUnitPropertyContext(ctx, unit, "After")
		if err != nil {
			return err
		}
		file.After, _ = after.Value.Value().([]string)
		wants, err := conn.GetUnitPropertyContext(ctx, unit, "Wants")
		if err != nil {
			return err
		}
		file.Wants, _ = wants.Value.Value().([]string)
		if !strings.HasSuffix(unit, ".service") {
			return nil
		}
		pause, err := conn.GetServicePropertyContext(ctx, unit, "RestartUSec")
		if err != nil {
			return err
		}
		microseconds, _ := pause.Value.Value().(uint64)
		file.RestartPause = time.Duration(microseconds) * time.Microsecond
		return nil
	})
	if err != nil {
		return UnitFile{}, fmt.Errorf("asking systemd how %s is set up: %w", unit, err)
	}
	return file, nil
}
