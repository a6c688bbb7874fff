package main

import (
	"os"
	"testing"

	"rekindle.edge/agent/snapshot/durable"
)

// TestMain lets the test binary be what the agent is to itself: a store that a test opens
// is checked in a process of the same program.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == durable.CheckCommand {
		os.Exit(durable.CheckMain(os.Args[2:], os.Stderr))
	}
	os.Exit(m.Run())
}
