package answer

import (
	"cmp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"rekindle.edge/api/v1alpha1"
)

const (
	// missedKept bounds what is counted apart; more than that is somebody who asks for
	// everything.
	missedKept = 256
	// missedShown is how many the status has room for.
	missedShown = 10
)

// Missed counts what was asked for in vain since the agent started: what to hold next.
type Missed struct {
	mu     sync.Mutex
	counts map[v1alpha1.MissedResource]int64 // by the resource without a count
}

// Add counts one request of a client.
func (m *Missed) Add(resource schema.GroupResource, client string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counts == nil {
		m.counts = map[v1alpha1.MissedResource]int64{}
	}
	key := v1alpha1.MissedResource{
		Group: shorten(resource.Group, 253), Resource: shorten(resource.Resource, 63), Client: shorten(client, 64),
	}
	if _, ok := m.counts[key]; ok || len(m.counts) < missedKept {
		m.counts[key]++
	}
}

// Most are those that were asked for most often.
func (m *Missed) Most() []v1alpha1.MissedResource {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []v1alpha1.MissedResource
	for key, count := range m.counts {
		key.Count = count
		all = append(all, key)
	}
	slices.SortFunc(all, func(a, b v1alpha1.MissedResource) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Client, b.Client))
	})
	return all[:min(missedShown, len(all))]
}

func shorten(text string, limit int) string { return text[:min(limit, len(text))] }
