package snapshot

import (
	"slices"

	"rekindle.edge/agent/snapshot/durable"
	"rekindle.edge/api/v1alpha1"
)

const (
	// keyLost is there while closed records may be missing: the store is new, or an older
	// one has taken its place. It holds the boot id of the newest record that is left.
	keyLost = "lost"
	// keyReset holds the boot id in which lost records were found again.
	keyReset = "reset"
)

// lostChange notes that records may be missing.
func lostChange(m *durable.Map) (durable.Change, error) {
	closed, err := closedRecords(m)
	if err != nil {
		return durable.Change{}, err
	}
	newest := ""
	if len(closed) > 0 {
		newest = closed[len(closed)-1].record.BootID
	}
	return change(bucketState, keyLost, newest)
}

// AdoptReported takes records that the store has lost from those that were reported before,
// newest first, during a boot. It returns all records, newest first, and how many were taken.
// A store that has lost none takes none.
func (s *Store) AdoptReported(reported []v1alpha1.Recovery, bootID string) ([]v1alpha1.Recovery, int, error) {
	s.records.Lock()
	defer s.records.Unlock()
	contents, err := s.Load()
	if err != nil || contents.Lost == nil {
		return contents.Recoveries, 0, err
	}
	merged, taken := mergeRecords(contents.Recoveries, *contents.Lost, reported)
	changes := []durable.Change{{Record: durable.Record{Bucket: bucketState, Key: keyLost}}}
	if taken > 0 {
		reset, err := change(bucketState, keyReset, bootID)
		if err != nil {
			return nil, 0, err
		}
		changes = append(changes, reset)
		// The keys are in the order of time, and every record has its place anew.
		closed, err := s.closed()
		if err != nil {
			return nil, 0, err
		}
		for _, old := range closed {
			changes = append(changes, durable.Change{Record: durable.Record{Bucket: bucketRecoveries, Key: old.key}})
		}
		first := uint64(1)
		if len(closed) > 0 {
			first = closed[len(closed)-1].number() + 1
		}
		for i, record := range slices.Backward(merged) {
			c, err := change(bucketRecoveries, recoveryKey(first+uint64(len(merged)-1-i)), record)
			if err != nil {
				return nil, 0, err
			}
			changes = append(changes, c)
		}
	}
	return merged, taken, s.durable.Write(durable.Now, changes...)
}

// mergeRecords puts the reported records that the store does not have between its own: after
// those that were closed since the loss, before newest, the one that was left, and all older
// ones. All are newest first.
func mergeRecords(own []v1alpha1.Recovery, newest string, reported []v1alpha1.Recovery) (merged []v1alpha1.Recovery, taken int) {
	has := func(records []v1alpha1.Recovery, bootID string) bool {
		return slices.ContainsFunc(records, func(r v1alpha1.Recovery) bool { return r.BootID == bootID })
	}
	split := slices.IndexFunc(own, func(r v1alpha1.Recovery) bool { return r.BootID == newest })
	if split < 0 {
		split = len(own)
	}
	merged = slices.Clone(own[:split])
	for _, record := range reported {
		if !has(own, record.BootID) {
			merged = append(merged, *record.DeepCopy())
			taken++
		}
	}
	merged = append(merged, own[split:]...)
	return merged[:min(len(merged), keptRecoveries)], taken
}
