package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/edgenode"
)

// A benchCase is one thing to measure: a way for a node to come back, or, where measure is
// set, the agent without a node.
type benchCase struct {
	name string
	// workload of the node; unset: plain.
	workload *workload
	// agent says that the agent is installed on the node.
	agent bool
	// spec is the node's part of a policy; nil: no policy matches the node.
	spec *v1alpha1.NodeRecoverySpec
	// prepare, if set, changes the node, which is off and has its disk, before it boots.
	prepare func(ctx context.Context, s *site) error
	// start, if set, does what kubelet would do, once the node boots; it gives the zero of kubelet_to_*.
	start func(ctx context.Context, s *site) (time.Time, error)
	// readyByProbe takes Ready from the outside probe; unset, from kubelet's log.
	readyByProbe bool
	// limit is how long after kernel start a run may take.
	limit time.Duration
	// offline says that the WAN is cut.
	offline bool
	// oneWay says that of all ways to cut the WAN the first that was asked for is enough.
	oneWay bool
	// ready is how many of the pods must be Ready in the end.
	ready func(pods int) int
	// after, if set, takes further figures when all pods are back.
	after func(ctx context.Context, s *site, result *record) error
	// measure, if set, is the whole case: nothing boots, and only the agent runs.
	measure func(ctx context.Context, s *solo, result *record) error
	// figures are what the case measures beside the times, by their names in extra.
	figures []string
}

// allCases are the cases by name; a new one is a file and a line here.
var allCases = []benchCase{
	nativeOnline, nativeOffline, floor,
	rekindleOffline, rekindleAsWritten, rekindleOnline,
	agentStart, agentIdle, passThrough,
	ordered, unordered, dependent, dependentPlain, alwaysOffline, gateCalls,
}

func caseNames() []string {
	var names []string
	for _, c := range allCases {
		names = append(names, c.name)
	}
	return names
}

func caseNamed(name string) (benchCase, bool) {
	i := slices.IndexFunc(allCases, func(c benchCase) bool { return c.name == name })
	if i < 0 {
		return benchCase{}, false
	}
	return allCases[i], true
}

// disk that the case's node boots from: that of all without an agent, with one, or with one
// that has this policy.
func (c benchCase) disk() string {
	switch {
	case c.spec != nil:
		return "installed-" + c.name
	case c.agent:
		return installedDisk
	}
	return savedDisk
}

// check says what a run must show and did not.
func (c benchCase) check(r record) error {
	if c.measure != nil {
		if r.Ready != r.Pods {
			return fmt.Errorf("%s, run %d: the agent serves %d of %d pods", c.name, r.Run, r.Ready, r.Pods)
		}
		return nil
	}
	want := c.ready(r.Pods)
	switch {
	case r.Extra[bootToKubelet] == nil:
		return fmt.Errorf("%s, run %d: kubelet never started within %s, so nothing is shown", c.name, r.Run, c.limit)
	case r.Ready != want:
		return fmt.Errorf("%s, run %d, WAN %s: %d of %d pods are Ready after %s; want %d", c.name, r.Run, r.WAN, r.Ready, r.Pods, c.limit, want)
	case r.serving != want:
		return fmt.Errorf("%s, run %d, WAN %s: %d of %d pods serve after %s; want %d", c.name, r.Run, r.WAN, r.serving, r.Pods, c.limit, want)
	}
	return nil
}

func all(pods int) int { return pods }
func none(int) int     { return 0 }

// done says that nothing more can come of a run.
func (c benchCase) done(pods []string, o observed) bool {
	for _, pod := range pods {
		if o.ready[pod].IsZero() || o.serving[pod].IsZero() {
			return false
		}
	}
	return true
}

// observe gathers what has been seen of a run so far.
func (c benchCase) observe(boot *edgenode.Boot, prober *edgenode.Prober, zero time.Time) (observed, error) {
	o := observed{bootZero: boot.Zero, kubeletZero: zero, serving: prober.Serving()}
	if c.readyByProbe {
		o.ready = o.serving
		return o, nil
	}
	witness, err := boot.Witness()
	if err != nil {
		return o, err
	}
	if len(witness.KubeletStarts) > 0 {
		o.kubeletZero = witness.KubeletStarts[0]
	}
	o.ready = map[string]time.Time{}
	for pod := range witness.Ready {
		o.ready[pod], _ = witness.FirstReady(pod)
	}
	return o, nil
}
