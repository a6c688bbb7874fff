package images

import (
	"slices"

	"rekindle.edge/api/v1alpha1"
)

// options of a plan, from the policy.
type options struct {
	// budget in bytes; 0: none.
	budget int64
	// pinning wanted. acting: not mode Observe.
	pinning, acting bool
}

// facts that a plan is made of.
type facts struct {
	wanted []want
	stock  stock
	// sizes of images that were too large, by reference, so that they are not pulled again
	// and again to find that out.
	sizes map[string]int64
	// damaged images by id; failed pulls by reference, with the reason code.
	damaged map[string]bool
	failed  map[string]string
	// blocked says of a reference that it is not to be pulled now.
	blocked func(want) bool
}

// plan is what a pass does and reports.
type plan struct {
	// pull is the most important image that is missing and may be pulled now.
	pull *want
	// pin and unpin are references.
	pin, unpin []string
	// evict are the policy's images that were pulled and found too large for the budget.
	evict []string
	// kept are the references within the budget that the node has.
	kept   []want
	status v1alpha1.ImagesStatus
	// tooLarge are sizes to remember.
	tooLarge map[string]int64
}

// decide makes the plan. The most important image is first served: one that does not fit
// leaves its room to smaller ones behind it. Images with the same content count once.
func decide(o options, f facts) plan {
	p := plan{tooLarge: map[string]int64{}}
	p.status.Wanted = int32(len(f.wanted))
	counted := map[string]bool{}
	keep := map[string]bool{}
	problem := func(w want, reason string) {
		p.status.Problems = append(p.status.Problems, v1alpha1.ImageProblem{Image: w.reference, Reason: reason})
	}
	usedByPods := map[string]bool{}
	for _, w := range f.wanted {
		if image, ok := f.stock.images[w.reference]; ok && w.pods {
			usedByPods[image.id] = true
		}
	}
	for _, w := range f.wanted {
		image, here := f.stock.images[w.reference]
		size := image.size
		if !here {
			size = f.sizes[w.reference]
		}
		if o.budget > 0 && !counted[image.id] && (p.status.Bytes+size > o.budget || !here && p.status.Bytes >= o.budget) {
			problem(w, v1alpha1.ImageOverBudget)
			if here {
				p.tooLarge[w.reference] = size
				if f.stock.records[w.reference].pulled && !usedByPods[image.id] && f.stock.alone(w.reference) {
					p.evict = append(p.evict, w.reference)
				}
			}
			continue
		}
		if !here {
			missing(&p, o, f, w, problem)
			continue
		}
		if !counted[image.id] {
			counted[image.id] = true
			p.status.Bytes += size
		}
		keep[w.reference] = true
		p.kept = append(p.kept, w)
		if f.damaged[image.id] {
			problem(w, v1alpha1.ImageDamaged)
		} else {
			p.status.Present++
		}
		pinning(&p, o, f, w, problem)
	}
	for name, r := range f.stock.records {
		stays := keep[name] && o.pinning && o.acting
		if r.ours && !stays && !slices.Contains(p.evict, name) {
			p.unpin = append(p.unpin, name)
		}
	}
	slices.Sort(p.unpin)
	return p
}

func missing(p *plan, o options, f facts, w want, problem func(want, string)) {
	reason := f.failed[w.reference]
	if reason == "" {
		reason = v1alpha1.ImageNotPresent
	}
	problem(w, reason)
	if p.pull == nil && o.acting && !f.blocked(w) {
		p.pull = &w
	}
}

func pinning(p *plan, o options, f facts, w want, problem func(want, string)) {
	r, known := f.stock.records[w.reference]
	switch {
	case r.pinned:
		p.status.Pinned++
	case o.pinning && o.acting && known:
		p.pin = append(p.pin, w.reference)
		p.status.Pinned++ // taken back by who cannot
	case o.pinning && o.acting:
		problem(w, v1alpha1.ImageNotPinned)
	}
}
