package snapshot

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"rekindle.edge/agent/boot"
	"rekindle.edge/agent/snapshot/durable"
	"rekindle.edge/agent/timeline"
	"rekindle.edge/api/v1alpha1"
)

// Buckets of the records. Values are JSON.
const (
	bucketState      = "state"
	bucketPods       = "pods"
	bucketRecoveries = "recoveries"

	keyMark   = "mark"
	keySpec   = "spec"
	keyOpen   = "open"
	keyListed = "listed"
)

// keptRecoveries bounds the closed records.
const keptRecoveries = 20

// Spec is the node's part of its policy as the agent last took it over.
type Spec struct {
	Generation int64                     `json:"generation"`
	Spec       v1alpha1.NodeRecoverySpec `json:"spec"`
}

// Contents is everything in the store.
type Contents struct {
	// Mark is of the boot in which the store was last written. Nil: the store is new.
	Mark *boot.Mark
	// Spec is nil when no policy applies, or none was ever seen.
	Spec *Spec
	// Pods last seen, by key.
	Pods map[string]timeline.LastSeen
	// Listed says whether a pod list was ever seen.
	Listed bool
	// Open is the record that is not closed. Nil: none.
	Open *timeline.State
	// Recoveries are the closed records, newest first.
	Recoveries []v1alpha1.Recovery
	// Lost is set while records may be missing: the store is new, or an older one has taken
	// its place. It is the boot id of the newest record that is left, if there is one.
	Lost *string
	// Reset is the boot id in which lost records were last found again.
	Reset string
}

// Load is all records.
func (s *Store) Load() (Contents, error) {
	contents := Contents{Pods: map[string]timeline.LastSeen{}}
	for key, into := range map[string]any{
		keyMark: &contents.Mark, keySpec: &contents.Spec, keyOpen: &contents.Open, keyListed: &contents.Listed,
		keyLost: &contents.Lost, keyReset: &contents.Reset,
	} {
		if value := s.durable.Get(bucketState, key); value != nil {
			if err := json.Unmarshal(value, into); err != nil {
				return contents, fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	err := s.durable.Each(bucketPods, func(key string, value []byte) error {
		var pod timeline.LastSeen
		if err := json.Unmarshal(value, &pod); err != nil {
			return fmt.Errorf("pod %s: %w", key, err)
		}
		contents.Pods[key] = pod
		return nil
	})
	if err != nil {
		return contents, err
	}
	closed, err := s.closed()
	for _, entry := range slices.Backward(closed) {
		contents.Recoveries = append(contents.Recoveries, entry.record)
	}
	return contents, err
}

// PutMark keeps which boot this is, and how the agent was stopped in it.
func (s *Store) PutMark(mark boot.Mark) error { return s.put(keyMark, mark) }

// PutSpec keeps the applied spec; nil removes it.
func (s *Store) PutSpec(spec *Spec) error {
	defer s.policyChanges.Add(1)
	if spec == nil {
		return s.durable.Write(durable.Now, durable.Change{Record: durable.Record{Bucket: bucketState, Key: keySpec}})
	}
	return s.put(keySpec, spec)
}

// PutPods keeps pods that have changed since they were last written, and drops those that
// are gone.
func (s *Store) PutPods(changed map[string]timeline.LastSeen, gone []string) error {
	listed, err := change(bucketState, keyListed, true)
	if err != nil {
		return err
	}
	changes := []durable.Change{listed}
	for key, pod := range changed {
		c, err := change(bucketPods, key, pod)
		if err != nil {
			return err
		}
		changes = append(changes, c)
	}
	for _, key := range gone {
		changes = append(changes, durable.Change{Record: durable.Record{Bucket: bucketPods, Key: key}})
	}
	return s.durable.Write(durable.Now, changes...)
}

// PutOpen keeps the open record as it stands.
func (s *Store) PutOpen(state timeline.State) error { return s.put(keyOpen, state) }

// CloseRecord keeps a closed record in place of the open one: a power cut leaves one or the
// other. A record of the same boot is replaced.
func (s *Store) CloseRecord(record v1alpha1.Recovery) error {
	s.records.Lock()
	defer s.records.Unlock()
	closed, err := s.closed()
	if err != nil {
		return err
	}
	number := uint64(1)
	if len(closed) > 0 {
		number = closed[len(closed)-1].number() + 1
	}
	added, err := change(bucketRecoveries, recoveryKey(number), record)
	if err != nil {
		return err
	}
	changes := []durable.Change{added, {Record: durable.Record{Bucket: bucketState, Key: keyOpen}}}
	var kept []closedRecord
	for _, old := range closed {
		if old.record.BootID != record.BootID {
			kept = append(kept, old)
		}
	}
	kept = kept[max(0, len(kept)+1-keptRecoveries):]
	for _, old := range closed {
		if !slices.ContainsFunc(kept, func(k closedRecord) bool { return k.key == old.key }) {
			changes = append(changes, durable.Change{Record: durable.Record{Bucket: bucketRecoveries, Key: old.key}})
		}
	}
	return s.durable.Write(durable.Now, changes...)
}

type closedRecord struct {
	key    string
	record v1alpha1.Recovery
}

func recoveryKey(number uint64) string { return string(binary.BigEndian.AppendUint64(nil, number)) }

func (c closedRecord) number() uint64 {
	if len(c.key) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64([]byte(c.key))
}

// closed are the closed records, oldest first.
func (s *Store) closed() ([]closedRecord, error) { return closedRecords(s.durable) }

func closedRecords(m *durable.Map) ([]closedRecord, error) {
	var records []closedRecord
	err := m.Each(bucketRecoveries, func(key string, value []byte) error {
		entry := closedRecord{key: key}
		if err := json.Unmarshal(value, &entry.record); err != nil {
			return fmt.Errorf("recovery: %w", err)
		}
		records = append(records, entry)
		return nil
	})
	slices.SortFunc(records, func(a, b closedRecord) int { return strings.Compare(a.key, b.key) })
	return records, err
}

func (s *Store) put(key string, v any) error {
	c, err := change(bucketState, key, v)
	if err != nil {
		return err
	}
	return s.durable.Write(durable.Now, c)
}

func change(bucket, key string, v any) (durable.Change, error) {
	value, err := json.Marshal(v)
	if err != nil {
		return durable.Change{}, fmt.Errorf("encoding a %T: %w", v, err)
	}
	return durable.Change{Record: durable.Record{Bucket: bucket, Key: key}, Value: value}, nil
}
