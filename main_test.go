package main

import (
	"flag"
	"os"
	"strings"
	"testing"
)

func TestFlagsAreDocumented(t *testing.T) {
	documented, err := os.ReadFile("docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	set := flag.NewFlagSet("rekindle-manager", flag.ContinueOnError)
	new(flags).register(set)
	set.VisitAll(func(f *flag.Flag) {
		if !strings.Contains(string(documented), "| `--"+f.Name+"` |") {
			t.Errorf("docs/policy.md does not describe --%s", f.Name)
		}
		if f.Usage == "" {
			t.Errorf("--%s does not say what it does", f.Name)
		}
	})
}

func TestOneReplicaLeadsUnlessToldOtherwise(t *testing.T) {
	set := flag.NewFlagSet("rekindle-manager", flag.ContinueOnError)
	var f flags
	f.register(set)
	if err := set.Parse(nil); err != nil {
		t.Fatal(err)
	}
	if !f.leaderElect || f.leaderElectionID != "rekindle-manager" {
		t.Errorf("leader election is %v with lease %q", f.leaderElect, f.leaderElectionID)
	}
}
