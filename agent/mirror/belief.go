package mirror

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"rekindle.edge/agent/snapshot"
)

// Kubelet kills what a list of pods lacks. So a full list that lacks many is not believed at
// once: the Node must be the known one, and a second list, read 10 s later, must lack them
// too. After a restore of etcd no list is evidence that a pod was deleted, since the pods of
// the time after the backup are missing without anybody having deleted them; for an hour,
// in which the cluster can be set right, what is missing is kept. What a list has is always
// taken, and a single deletion that a watch sees is believed.

const (
	// fewMissing pods are believed to be gone at once, and so is half of them or less.
	fewMissing = 3
	// secondLook is the time until the second list.
	secondLook = 10 * time.Second
	// lineDistrust is for how long after a restore nothing missing counts as deleted.
	lineDistrust = time.Hour
	// distrustLook is the time between lists meanwhile.
	distrustLook = time.Minute
)

// doubt is a list that was not believed.
type doubt struct {
	since   time.Time
	missing map[types.UID]bool
}

// evidence is what speaks for and against a list of pods.
type evidence struct {
	now time.Time
	// stored are the pods that the node has and that are not over; listed is the new list.
	stored, listed []snapshot.Object
	// sameNode says that the server's Node is the known one.
	sameNode bool
	// brokenAt is when the line of versions was last broken.
	brokenAt time.Time
	// before is the doubt that the last list left; nil: none.
	before *doubt
}

// belief is what becomes of a list.
type belief struct {
	// held are pods that are kept though the list lacks them.
	held []snapshot.Object
	// doubt to remember; nil: the list is believed.
	doubt *doubt
	// again is when to list again; 0: no need.
	again time.Duration
	// why in words.
	why string
}

func believe(e evidence) belief {
	listed, taken := map[types.UID]bool{}, map[[2]string]bool{}
	for _, pod := range e.listed {
		listed[pod.UID] = true
		taken[[2]string{pod.Namespace, pod.Name}] = true
	}
	missing := map[types.UID]bool{}
	var held []snapshot.Object
	for _, pod := range e.stored {
		if listed[pod.UID] {
			continue
		}
		missing[pod.UID] = true
		// There is another pod of that name now, so this one is gone.
		if !taken[[2]string{pod.Namespace, pod.Name}] {
			held = append(held, pod)
		}
	}
	hold := func(since time.Time, again time.Duration, why string) belief {
		return belief{held: held, doubt: &doubt{since, missing}, again: again, why: why}
	}
	switch {
	case len(held) == 0:
		return belief{}
	case !e.brokenAt.IsZero() && e.now.Sub(e.brokenAt) < lineDistrust && e.now.Sub(e.brokenAt) > -lineDistrust:
		return hold(e.now, distrustLook, "the API server was restored to an earlier state")
	case len(missing) < fewMissing || 2*len(missing) <= len(e.stored):
		return belief{}
	case !e.sameNode:
		return hold(e.now, secondLook, "the Node is not the known one")
	case e.before == nil || e.now.Before(e.before.since) || !within(e.before.missing, missing):
		return hold(e.now, secondLook, "more than half of the pods are missing, a second list must agree")
	case e.now.Sub(e.before.since) < secondLook:
		return hold(e.before.since, secondLook-e.now.Sub(e.before.since), "more than half of the pods are missing, a second list must agree")
	}
	return belief{}
}

func within(a, b map[types.UID]bool) bool {
	for uid := range a {
		if !b[uid] {
			return false
		}
	}
	return true
}
