package order

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"rekindle.edge/api/v1alpha1"
)

// Names of the groups that no policy has to name. A stage's name has no upper case.
const (
	groupCritical = "Critical"
	groupRest     = "Rest"
)

const (
	// criticalTimeout bounds how long the stages wait for the critical pods.
	criticalTimeout = 30 * time.Second
	// defaultTimeout is a stage's when its policy was stored without.
	defaultTimeout = time.Minute
	// minParallel is the least of how many sandboxes are made at once.
	minParallel = 2
)

// group is pods that start together.
type group struct {
	name     string
	selects  func(*pod) bool
	ready    bool // Ready is waited for, and not only Started
	timeout  time.Duration
	parallel int
	// atFirst is the same before as many containers run as it says: the most important pods
	// have the processors to themselves. 0: there is no difference.
	atFirst int
}

// groupsOf makes the groups of a policy, and how long pods are held at most in all.
func groupsOf(ordering v1alpha1.StartupOrdering, parallel int) ([]group, time.Duration, error) {
	parallel = max(minParallel, parallel)
	atFirst := max(minParallel, parallel/2)
	rest := group{name: groupRest, selects: func(*pod) bool { return true }, parallel: parallel, atFirst: atFirst}
	if len(ordering.Stages) == 0 {
		return []group{rest}, 0, nil
	}
	var stages []group
	var total time.Duration
	for i := range ordering.Stages {
		stage, err := groupOf(&ordering.Stages[i], parallel)
		if err != nil {
			return nil, 0, fmt.Errorf("startupOrdering.stages[%d] (%s): %w", i, ordering.Stages[i].Name, err)
		}
		stages = append(stages, stage)
		total += stage.timeout
	}
	critical := group{name: groupCritical, ready: true, timeout: criticalTimeout, parallel: parallel, atFirst: atFirst, selects: func(p *pod) bool {
		return p.critical() && !slices.ContainsFunc(stages, func(s group) bool { return s.selects(p) })
	}}
	return append(append([]group{critical}, stages...), rest), total, nil
}

func groupOf(stage *v1alpha1.Stage, parallel int) (group, error) {
	g := group{
		name: stage.Name, ready: stage.WaitFor != v1alpha1.WaitForStarted,
		timeout: time.Duration(stage.TimeoutSeconds) * time.Second, parallel: parallel, atFirst: max(minParallel, parallel/2),
	}
	if g.timeout <= 0 {
		g.timeout = defaultTimeout
	}
	if stage.MaxParallel != nil {
		g.parallel, g.atFirst = int(*stage.MaxParallel), 0
	}
	var selectors []func(*pod) bool
	for i := range stage.Pods {
		selects, err := selector(&stage.Pods[i])
		if err != nil {
			return group{}, fmt.Errorf("pods[%d].labelSelector: %w", i, err)
		}
		selectors = append(selectors, selects)
	}
	g.selects = func(p *pod) bool {
		return slices.ContainsFunc(selectors, func(selects func(*pod) bool) bool { return selects(p) })
	}
	return g, nil
}

// selector selects pods that meet all fields that are set.
func selector(s *v1alpha1.PodSelector) (func(*pod) bool, error) {
	match := labels.Everything()
	if s.LabelSelector != nil {
		var err error
		if match, err = metav1.LabelSelectorAsSelector(s.LabelSelector); err != nil {
			return nil, err
		}
	}
	return func(p *pod) bool {
		return (len(s.Namespaces) == 0 || slices.Contains(s.Namespaces, p.namespace)) &&
			(len(s.PriorityClassNames) == 0 || slices.Contains(s.PriorityClassNames, p.priorityClass)) &&
			(s.Source != v1alpha1.PodSourceStatic || p.static) &&
			match.Matches(p.labels)
	}, nil
}
