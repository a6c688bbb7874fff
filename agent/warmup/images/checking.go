package images

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func checkKey(id string) string { return "check " + id }

// sync has images that are new on the disk, whoever pulled them: one call for all.
func (k *Keeper) sync(ctx context.Context, kept []want, s stock) {
	done := false
	for _, w := range kept {
		id := s.images[w.reference].id
		r, known := s.records[w.reference]
		if !known || k.synced[id] {
			continue
		}
		if !done {
			err := k.runtime.sync(ctx, r.target.Target.Digest, id)
			if err != nil {
				k.log.V(1).Info("Image is left to the kernel to be written to the disk", "image", w.reference, "reason", err.Error())
			}
			if transient(err) {
				continue
			}
			done = err == nil
		}
		k.synced[id] = true
	}
}

// toCheck is the most important image that is to be checked now: after a power cut all are,
// once; those whose program is visibly lost at once, the others when the recovery is over.
// So are those that somebody else has seen to be damaged.
func (k *Keeper) toCheck(ctx context.Context, kept []want, s stock, settled bool, wait func(time.Duration)) *want {
	looked := false
	for i, w := range kept {
		id := s.images[w.reference].id
		r, known := s.records[w.reference]
		if !known {
			continue
		}
		if left := k.patience.left(checkKey(id), k.clock.Now()); left > 0 {
			wait(left)
			continue
		}
		if k.state.Damaged[id] || k.suspected(id, false) {
			return &kept[i]
		}
		if !k.state.Unclean || k.state.Checked[id] {
			continue
		}
		if settled {
			return &kept[i]
		}
		if !k.inspected[id] {
			if looked {
				wait(calm) // one at a time: pods are starting
				continue
			}
			looked = true
			k.inspected[id] = true
			if err := k.runtime.inspect(ctx, r.target.Target.Digest, id); err != nil && !transient(err) {
				k.log.Error(err, "Image was damaged, mending it", "image", w.reference)
				return &kept[i]
			}
		}
	}
	return nil
}

// check compares an image with its blobs and mends it: from the blobs, and if those are
// damaged too, from the registry.
func (k *Keeper) check(ctx context.Context, w want, s stock) {
	id := s.images[w.reference].id
	target := s.records[w.reference].target.Target.Digest
	suspect := k.suspected(id, false)
	done := func(chain string) bool { return k.state.Checked[chain] && !suspect }
	sound := func(chain string) { k.state.Checked[chain] = true }
	o, err := k.runtime.check(ctx, target, id, done, sound)
	if errors.Is(err, errContent) || errors.Is(err, errUnpacked) {
		k.log.Error(err, "Image is damaged, getting it from the registry", "image", w.reference)
		renewErr := k.runtime.renew(ctx, target, id, func() error { return k.pullWith(ctx, w) })
		if renewErr == nil {
			o, err = k.runtime.check(ctx, target, id, done, sound)
		} else if !transient(renewErr) {
			err = errors.Join(err, renewErr)
		}
	}
	if ctx.Err() != nil || transient(err) {
		k.patience.failed(checkKey(id), k.clock.Now())
		return
	}
	k.suspected(id, true)
	if err != nil {
		if !k.state.Damaged[id] {
			k.log.Error(err, "Image stays damaged; delete the pods that use it and the image, and it is pulled anew", "image", w.reference)
		}
		k.state.Damaged[id] = true
		k.patience.failed(checkKey(id), k.clock.Now())
		k.save()
		return
	}
	delete(k.state.Damaged, id)
	k.state.Checked[id] = true
	delete(k.patience, checkKey(id))
	k.save()
	switch {
	case o.mended > 0:
		k.log.Info("Image was mended", "image", w.reference, "files", o.mended)
	case o.unchecked != "":
		k.log.Info("Image cannot be checked in full", "image", w.reference, "reason", o.unchecked)
	default:
		k.log.V(1).Info("Image is whole", "image", w.reference)
	}
}

// transient says that an error is of the way to the runtime, and tells nothing of an image.
func transient(err error) bool {
	if err == nil || errors.Is(err, errContent) {
		return false
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.Canceled, codes.DeadlineExceeded:
		return true
	}
	return false
}

// settle calls Settled, once.
func (k *Keeper) settle(ctx context.Context, kept []want, s stock) {
	if k.settled || k.Settled == nil {
		return
	}
	k.settled = true
	var dirs []string
	seen := map[string]bool{}
	for _, w := range kept {
		r, known := s.records[w.reference]
		if !known {
			continue
		}
		layers, err := k.runtime.layers(ctx, r.target.Target.Digest, s.images[w.reference].id)
		if err != nil {
			continue // what is wrong with it is told elsewhere
		}
		for _, dir := range layers {
			if !seen[dir] {
				seen[dir] = true
				dirs = append(dirs, dir)
			}
		}
	}
	k.Settled(ctx, dirs)
}
