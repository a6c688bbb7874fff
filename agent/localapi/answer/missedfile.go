package answer

import (
	"context"
	"maps"
	"time"

	"github.com/go-logr/logr"

	"rekindle.edge/agent/host"
	"rekindle.edge/api/v1alpha1"
)

// missedEvery is how often the counts are written when they have changed. What an agent that
// is killed counted since is lost.
const missedEvery = 10 * time.Second

// Keep takes up the counts of an agent that ran before in this boot, from a file in a
// directory that does not outlive it, and keeps them there until ctx ends.
func (m *Missed) Keep(ctx context.Context, path string) {
	log := logr.FromContextOrDiscard(ctx)
	if err := m.load(path); err != nil {
		log.Error(err, "Counts of what was asked for in vain are lost, counting anew", "file", path)
	}
	ticker := time.NewTicker(missedEvery)
	defer ticker.Stop()
	told := false
	for ended := false; !ended; {
		select {
		case <-ctx.Done():
			ended = true
		case <-ticker.C:
		}
		err := m.save(path)
		if err != nil && !told {
			log.Error(err, "Counts of what was asked for in vain would not outlive a restart of the agent, trying again")
		}
		told = err != nil
	}
}

// load adds the counts of a file. One that is not there has none.
func (m *Missed) load(path string) error {
	var counts []v1alpha1.MissedResource
	if found, err := host.LoadJSON(path, &counts); err != nil || !found {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, resource := range counts {
		count := resource.Count
		resource.Count = 0
		m.add(resource, count)
	}
	m.saved = maps.Clone(m.counts)
	return nil
}

// save writes the counts if they have changed.
func (m *Missed) save(path string) error {
	m.mu.Lock()
	counts := maps.Clone(m.counts)
	same := maps.Equal(counts, m.saved)
	m.mu.Unlock()
	if same {
		return nil
	}
	if err := host.SaveJSON(path, listed(counts)); err != nil {
		return err
	}
	m.mu.Lock()
	m.saved = counts
	m.mu.Unlock()
	return nil
}
