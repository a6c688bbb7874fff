package snapshot

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rekindle.edge/agent/boot"
	"rekindle.edge/api/v1alpha1"
)

func recoveries(ids ...string) []v1alpha1.Recovery {
	var records []v1alpha1.Recovery
	for _, id := range ids {
		records = append(records, v1alpha1.Recovery{BootID: id})
	}
	return records
}

func TestMergeRecords(t *testing.T) {
	var many []string
	for i := range keptRecoveries {
		many = append(many, fmt.Sprint(i))
	}
	cases := map[string]struct {
		own      []v1alpha1.Recovery
		newest   string
		reported []v1alpha1.Recovery
		want     []v1alpha1.Recovery
		taken    int
	}{
		"a new store takes all":                        {reported: recoveries("c", "b", "a"), want: recoveries("c", "b", "a"), taken: 3},
		"what it has measured since is newer":          {own: recoveries("d"), reported: recoveries("c", "b"), want: recoveries("d", "c", "b"), taken: 2},
		"an older store lacks the last":                {own: recoveries("b", "a"), newest: "b", reported: recoveries("d", "c", "b"), want: recoveries("d", "c", "b", "a"), taken: 2},
		"an older store that has measured since":       {own: recoveries("e", "b", "a"), newest: "b", reported: recoveries("d", "c", "b", "a"), want: recoveries("e", "d", "c", "b", "a"), taken: 2},
		"what it has measured since and has reported":  {own: recoveries("d"), reported: recoveries("d", "c"), want: recoveries("d", "c"), taken: 1},
		"a store that has lost nothing after all":      {own: recoveries("b", "a"), newest: "b", reported: recoveries("b", "a"), want: recoveries("b", "a")},
		"the oldest make room for those that are kept": {own: recoveries(many...), newest: "0", reported: recoveries("x"), want: recoveries(append([]string{"x"}, many[:keptRecoveries-1]...)...), taken: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, taken := mergeRecords(tc.own, tc.newest, tc.reported)
			if diff := cmp.Diff(tc.want, got); diff != "" || taken != tc.taken {
				t.Errorf("took %d, want %d; records (-want +got):\n%s", taken, tc.taken, diff)
			}
		})
	}
}

func TestANewStoreTakesWhatWasReportedOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	store := mustOpen(t, dir)
	must(t, store.PutMark(boot.Mark{BootID: "three"}))
	must(t, store.Close())

	// The link comes a boot later: that something is missing was not forgotten.
	store = mustOpen(t, dir)
	must(t, store.CloseRecord(v1alpha1.Recovery{BootID: "three"}))
	fill(t, store)
	want := recoveries("one", "zero", "three")
	_, taken, err := store.AdoptReported(recoveries("b", "a"), "four")
	must(t, err)
	if taken != 2 {
		t.Errorf("took %d records, want 2", taken)
	}
	must(t, store.Close())

	store = mustOpen(t, dir)
	got, err := store.Load()
	must(t, err)
	var ids []v1alpha1.Recovery
	for _, record := range got.Recoveries {
		ids = append(ids, v1alpha1.Recovery{BootID: record.BootID})
	}
	if diff := cmp.Diff(append(want, recoveries("b", "a")...), ids); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	if got.Lost != nil || got.Reset != "four" || got.Open == nil {
		t.Errorf("lost %v, reset %q, open %v, want nothing lost, reset in four and the open record kept", got.Lost, got.Reset, got.Open)
	}

	// Whatever a status says later, the store is what counts.
	if _, taken, err := store.AdoptReported(recoveries("made-up"), "five"); taken != 0 || err != nil {
		t.Errorf("took %d records, error %v", taken, err)
	}
	must(t, store.CloseRecord(v1alpha1.Recovery{BootID: "five"}))
	if got, err = store.Load(); err != nil || got.Recoveries[0].BootID != "five" {
		t.Errorf("newest record is %q, error %v, want five", got.Recoveries[0].BootID, err)
	}
}
