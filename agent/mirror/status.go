package mirror

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

const (
	// defaultStaleness applies while no policy does.
	defaultStaleness = 300 * time.Second
	// refusedPatience is how long a refusal may last before it is told: the Node authorizer
	// learns of a pod's references a moment after the pod is there. The warm list's rights
	// are there or not.
	refusedPatience, warmPatience = 30 * time.Second, 5 * time.Second
)

// Report is what the status says of the mirror.
type Report struct {
	// Fresh is the condition SnapshotFresh without times.
	Fresh metav1.Condition
	// InStep is when everything was last known in step; zero: never.
	InStep   time.Time
	Objects  int32
	Findings []v1alpha1.Finding
}

// standing is what a report is made of.
type standing struct {
	now       time.Time
	staleness time.Duration
	// inStep of each collection that is mirrored; zero: never.
	inStep  map[schema.GroupVersionResource]time.Time
	refused []refusedRead
	// large are entries of the warm list that are left out.
	large []refusedRead
	// doubt in words; empty: the list of pods is believed.
	doubt string
	held  int
	other error
	// issuer is why the issuer's keys cannot be read; empty: they can.
	issuer string
	tokens tokenBook
}

// refusedRead is a scope that the server does not let the node read.
type refusedRead struct {
	scope snapshot.Scope
	warm  bool
	why   string
}

// Report gives the present state. It asks nobody.
func (m *Mirror) Report() Report {
	s := m.standing()
	report := s.report()
	for resource := range s.inStep {
		all, _ := m.objects.List(resource)
		report.Objects += int32(len(all))
	}
	for resource := range byClosure {
		if _, counted := s.inStep[resource]; !counted {
			all, _ := m.objects.List(resource)
			report.Objects += int32(len(all))
		}
	}
	return report
}

func (m *Mirror) standing() standing {
	m.mu.Lock()
	s := standing{
		now: m.wall(), staleness: defaultStaleness, inStep: map[schema.GroupVersionResource]time.Time{},
		other: m.other, issuer: m.issuerRefused, tokens: m.tokens,
	}
	if m.spec != nil && m.spec.Snapshot.MaxStalenessSeconds > 0 {
		s.staleness = time.Duration(m.spec.Snapshot.MaxStalenessSeconds) * time.Second
	}
	if m.doubt != nil {
		s.doubt, s.held = m.doubtWhy, len(m.doubt.missing)
	}
	for _, resource := range append([]schema.GroupVersionResource{pods, nodes}, baseCollections...) {
		s.inStep[resource] = time.Time{}
	}
	for state := range m.states {
		patience := refusedPatience
		if state.warm {
			patience = warmPatience
		}
		if state.large != "" {
			s.large = append(s.large, refusedRead{state.scope, true, state.large})
			continue
		}
		if state.refused != "" && s.now.Sub(state.refusedSince) >= patience {
			s.refused = append(s.refused, refusedRead{state.scope, state.warm, state.refused})
		} else if state.scope.Resource.Version != "" && !state.optional {
			s.inStep[state.scope.Resource] = time.Time{}
		}
	}
	m.mu.Unlock()
	for resource := range s.inStep {
		s.inStep[resource], _ = m.objects.InStep(resource)
	}
	return s
}

func (s standing) report() Report {
	r := Report{Findings: s.findings()}
	oldest := schema.GroupVersionResource{}
	first := true
	for _, resource := range slices.SortedFunc(maps.Keys(s.inStep), func(a, b schema.GroupVersionResource) int { return strings.Compare(a.String(), b.String()) }) {
		if t := s.inStep[resource]; first || t.Before(r.InStep) {
			r.InStep, oldest, first = t, resource, false
		}
	}
	condition := func(status metav1.ConditionStatus, reason, message string) {
		r.Fresh = metav1.Condition{Type: v1alpha1.ConditionSnapshotFresh, Status: status, Reason: reason, Message: message}
	}
	switch {
	case s.other != nil:
		condition(metav1.ConditionFalse, v1alpha1.ReasonOtherCluster, "The API server that answers is not of the cluster that this node was in; nothing of it is taken.")
	case s.doubt != "":
		condition(metav1.ConditionFalse, v1alpha1.ReasonPodListHeld, "The API server's list of pods lacks pods of this node and is not believed: "+s.doubt+".")
	case len(s.refused) > 0:
		condition(metav1.ConditionFalse, v1alpha1.ReasonReadRefused, "The node may not read "+s.refused[0].name()+" and perhaps more, see the findings.")
	case r.InStep.IsZero():
		condition(metav1.ConditionUnknown, v1alpha1.ReasonNotSynced, "Not everything was read yet: "+oldest.GroupResource().String()+".")
	case s.now.Sub(r.InStep) > s.staleness:
		condition(metav1.ConditionFalse, v1alpha1.ReasonOutOfStep, fmt.Sprintf("%s was last in step longer ago than %s.", oldest.GroupResource(), s.staleness))
	default:
		condition(metav1.ConditionTrue, v1alpha1.ReasonInStep, fmt.Sprintf("Everything was in step within %s.", s.staleness))
	}
	return r
}

// retell is how often it is told that only times have changed.
const retell = 10 * time.Minute

// tick tells of a report that differs. What is worth a write is for others to say.
func (m *Mirror) tick() {
	r := m.Report()
	now := fmt.Sprint(r.Fresh.Status, r.Fresh.Reason, r.Fresh.Message, r.Objects, r.Findings)
	m.mu.Lock()
	at := m.wall()
	news := now != m.lastReport || at.Sub(m.lastTold) >= retell || at.Before(m.lastTold)
	if news {
		m.lastReport, m.lastTold = now, at
	}
	m.mu.Unlock()
	if news {
		m.changed()
	}
}

func (m *Mirror) setIssuerRefused(why string) {
	m.mu.Lock()
	m.issuerRefused = why
	m.mu.Unlock()
	m.tick()
}

// silent says whether the server was not heard of for too long.
func (m *Mirror) silent() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	limit := longestSilence
	if m.spec != nil && m.spec.Snapshot.MaxStalenessSeconds > 0 {
		limit = min(limit, time.Duration(m.spec.Snapshot.MaxStalenessSeconds)*time.Second/4)
	}
	silence := m.wall().Sub(m.heard)
	return silence >= limit || silence < 0
}

// markInStep notes for each collection whose watches all run that it is in step, as of when
// the server was last heard of. With a resource, for that one alone.
func (m *Mirror) markInStep(only ...schema.GroupVersionResource) {
	m.mu.Lock()
	at := m.heard
	if m.wall().Sub(at) < longestSilence {
		at = m.wall()
	}
	running := map[schema.GroupVersionResource]bool{}
	for state := range m.states {
		resource := state.scope.Resource
		if len(only) > 0 && !slices.Contains(only, resource) {
			continue
		}
		inStep := state.open && state.listed && !state.held
		if before, seen := running[resource]; seen {
			inStep = inStep && before
		}
		running[resource] = inStep
	}
	if m.other != nil {
		clear(running)
	}
	m.mu.Unlock()
	for resource, inStep := range running {
		if inStep {
			m.objects.MarkInStep(resource, at)
		}
	}
}
