package main

import (
	"context"
	"net/netip"

	"rekindle.edge/agent/host"
	"rekindle.edge/agent/localapi"
	"rekindle.edge/agent/wiring"
)

// kubeletOf finds kubelet's connections by the main process of its unit.
func kubeletOf(unit string, units wiring.Units, files host.Files) localapi.Kubelet {
	return func(ctx context.Context, local, remote netip.AddrPort) (bool, error) {
		pid, err := units.MainPID(ctx, unit)
		if err != nil || pid == 0 {
			return false, err
		}
		return files.OwnsConnection(pid, local, remote)
	}
}
