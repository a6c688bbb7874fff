package answer

import (
	"cmp"
	"slices"
	"strings"
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

// Missed counts what was asked for in vain in this boot: what to hold next.
type Missed struct {
	mu sync.Mutex
	// counts by the resource without a count; saved is what of them is in the file.
	counts, saved map[v1alpha1.MissedResource]int64
}

// Add counts one request of a client.
func (m *Missed) Add(resource schema.GroupResource, client string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(v1alpha1.MissedResource{
		Group: shorten(resource.Group, 253), Resource: shorten(resource.Resource, 63), Client: shorten(client, 64),
	}, 1)
}

func (m *Missed) add(key v1alpha1.MissedResource, count int64) {
	if m.counts == nil {
		m.counts = map[v1alpha1.MissedResource]int64{}
	}
	if _, ok := m.counts[key]; ok || len(m.counts) < missedKept {
		m.counts[key] += count
	}
}

// Most are those that were asked for most often.
func (m *Missed) Most() []v1alpha1.MissedResource {
	m.mu.Lock()
	all := listed(m.counts)
	m.mu.Unlock()
	slices.SortFunc(all, func(a, b v1alpha1.MissedResource) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Client, b.Client))
	})
	return all[:min(missedShown, len(all))]
}

func listed(counts map[v1alpha1.MissedResource]int64) []v1alpha1.MissedResource {
	var all []v1alpha1.MissedResource
	for key, count := range counts {
		key.Count = count
		all = append(all, key)
	}
	return all
}

// shorten makes a name that the status can hold of what a caller has sent.
func shorten(text string, limit int) string {
	return strings.ToValidUTF8(text[:min(limit, len(text))], "")
}
