package images

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/api/v1alpha1"
)

// pass looks once and does at most one thing that takes long. It says whether it did, and
// else when what waits may be tried.
func (k *Keeper) pass(ctx context.Context, settled bool) (bool, time.Duration) {
	spec := k.Spec()
	stock, err := k.runtime.stock(ctx)
	if err != nil {
		if k.silentSince.IsZero() {
			k.silentSince = k.clock.Now()
		}
		if k.clock.Since(k.silentSince) < silence || k.Report().Warm.Reason == v1alpha1.ReasonRuntimeSilent {
			return false, calm
		}
		k.log.Error(err, "Container runtime does not tell its images, asking again")
		k.tell(nil, condition(metav1.ConditionUnknown, v1alpha1.ReasonRuntimeSilent, "The container runtime does not tell its images; see its unit and criEndpoint in the agent's configuration."))
		return false, calm
	}
	k.silentSince = time.Time{}
	o := optionsOf(spec)
	now := k.clock.Now()
	k.takePull()
	k.calmDown()
	wanted := wanted(spec, k.running())
	next := time.Duration(0)
	wait := func(d time.Duration) {
		if d > 0 && (next == 0 || d < next) {
			next = d
		}
	}
	k.note(wanted, stock, now)
	p := decide(o, facts{wanted: wanted, stock: stock, sizes: k.state.Sizes, damaged: k.state.Damaged, failed: k.failed, blocked: func(w want) bool {
		left := max(k.patience.left(w.reference, now), k.patience.left(registry(w.reference), now))
		if w.pods && !w.secret {
			left = max(left, kubeletFirst-now.Sub(k.missingSince[w.reference]))
		}
		wait(left)
		return left > 0
	}})
	if whole, _ := k.Objects.Trusted(); !whole && spec != nil {
		p.unpin, p.evict = nil, nil // the image of a pod that is not known may be among them
	}
	k.setPins(ctx, &p)
	if k.state.remember(p.tooLarge, wanted) {
		k.save()
	}
	k.publish(spec, p.status)
	if !o.acting {
		return false, next
	}
	k.sync(ctx, p.kept, stock)
	if w := k.toCheck(ctx, p.kept, stock, settled, wait); w != nil {
		k.check(ctx, *w, stock)
		return true, 0
	}
	if !settled {
		if next == 0 {
			next = unsettled
		}
		return false, min(next, unsettled)
	}
	k.settle(ctx, p.kept, stock)
	for _, reference := range p.evict {
		k.log.Info("Image is larger than what the budget has left for it, removing it", "image", reference)
		if err := k.runtime.remove(ctx, reference); err != nil {
			k.log.Error(err, "Image cannot be removed", "image", reference)
		}
	}
	if p.pull == nil || k.pulling {
		return false, next
	}
	k.pull(ctx, *p.pull)
	return true, 0
}

func optionsOf(spec *v1alpha1.NodeRecoverySpec) options {
	if spec == nil {
		return options{acting: true} // pins of an earlier policy are taken away
	}
	o := options{acting: spec.Mode != v1alpha1.ModeObserve, pinning: spec.CacheWarmup.Images.Pinning != v1alpha1.ToggleDisabled}
	if size := spec.CacheWarmup.Images.MaxSize; size != nil {
		o.budget = size.Value()
	}
	return o
}

func (k *Keeper) setPins(ctx context.Context, p *plan) {
	for _, name := range p.pin {
		if err := k.runtime.pin(ctx, name, true); err != nil {
			k.log.Error(err, "Image cannot be pinned", "image", name)
			p.status.Pinned--
			p.status.Problems = append(p.status.Problems, v1alpha1.ImageProblem{Image: name, Reason: v1alpha1.ImageNotPinned})
			continue
		}
		k.log.Info("Image is pinned", "image", name)
	}
	for _, name := range p.unpin {
		if err := k.runtime.pin(ctx, name, false); err != nil && status.Code(err) != codes.NotFound {
			k.log.Error(err, "Image cannot be unpinned", "image", name)
			continue
		}
		k.log.Info("Image is unpinned", "image", name)
	}
}

func (k *Keeper) save() {
	if err := k.state.save(); err != nil {
		k.log.Error(err, "What is known of images cannot be written", "file", k.StateFile)
	}
}
