package main

import (
	"context"
	"fmt"
	"time"

	"rekindle.edge/test/edgenode"
)

// A benchCase is one way for a node to come back.
type benchCase struct {
	name string
	// prepare changes the node, which is off and has the saved disk, before it boots.
	prepare func(ctx context.Context, r *rig) error
	// disk that the node starts from; unset: savedDisk.
	disk string
	// start, if set, does what kubelet would do, once the node boots; it gives the zero of kubelet_to_*.
	start func(ctx context.Context, r *rig) (time.Time, error)
	// readyByProbe takes Ready from the outside probe; unset, from kubelet's log.
	readyByProbe bool
	// limit is how long after kernel start a run may take.
	limit time.Duration
	// offline says that the WAN is cut.
	offline bool
	// ready is how many of the pods must be Ready in the end.
	ready func(pods int) int
}

// allCases are the cases by name; a new one is a file and a line here.
var allCases = []benchCase{nativeOnline, nativeOffline, floor, rekindleOffline, rekindleOnline}

func caseNames() []string {
	var names []string
	for _, c := range allCases {
		names = append(names, c.name)
	}
	return names
}

// check says what a run must show and did not.
func (c benchCase) check(r record) error {
	want := c.ready(r.Pods)
	switch {
	case r.Extra[bootToKubelet] == nil:
		return fmt.Errorf("%s, run %d: kubelet never started within %s, so nothing is shown", c.name, r.Run, c.limit)
	case r.Ready != want:
		return fmt.Errorf("%s, run %d: %d of %d pods are Ready after %s; want %d", c.name, r.Run, r.Ready, r.Pods, c.limit, want)
	case r.serving != want:
		return fmt.Errorf("%s, run %d: %d of %d pods serve after %s; want %d", c.name, r.Run, r.serving, r.Pods, c.limit, want)
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
