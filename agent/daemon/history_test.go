package daemon

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"rekindle.edge/agent/boot"
	"rekindle.edge/api/v1alpha1"
)

// TestTheHistoryOutlivesTheStore: a store that is new takes the records that were reported,
// and a finding says so for the rest of the boot.
func TestTheHistoryOutlivesTheStore(t *testing.T) {
	store := newStore(t)
	begin := func(bootID string) *loop { return beginLoop(t, store, bootID) }
	check := func(l *loop, lost bool, recoveries []v1alpha1.Recovery, findings ...string) {
		t.Helper()
		facts := l.reported.Load()
		var reasons []string
		for _, f := range facts.Findings {
			reasons = append(reasons, f.Reason)
		}
		if facts.RecordsLost != lost || cmp.Diff(recoveries, facts.Recoveries) != "" || cmp.Diff(findings, reasons) != "" {
			t.Errorf("lost %v, recoveries %v, findings %v, want %v, %v, %v", facts.RecordsLost, facts.Recoveries, reasons, lost, recoveries, findings)
		}
	}
	l := begin("three")
	check(l, true, nil)
	if err := store.PutMark(boot.Mark{BootID: "three"}); err != nil {
		t.Fatal(err)
	}
	// The agent is restarted before the API server is heard.
	l = begin("three")
	check(l, true, nil)
	reported := []v1alpha1.Recovery{{BootID: "two"}, {BootID: "one"}}
	if err := l.takeReported(reported); err != nil {
		t.Fatal(err)
	}
	check(l, false, reported, v1alpha1.ReasonStoreReset)
	check(begin("three"), false, reported, v1alpha1.ReasonStoreReset)
	check(begin("four"), false, reported)
}

func TestTheFirstInstallationIsNoLoss(t *testing.T) {
	l := beginLoop(t, newStore(t), "one")
	if err := l.takeReported(nil); err != nil {
		t.Fatal(err)
	}
	if facts := l.reported.Load(); facts.RecordsLost || len(facts.Findings) > 0 {
		t.Errorf("lost %v, findings %v, want none", facts.RecordsLost, facts.Findings)
	}
}
