package images

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

// pulled is how a pull has ended.
type pulled struct {
	want want
	err  error
}

// pull begins to get one image, beside the passes: a large one must not keep others from
// being pinned.
func (k *Keeper) pull(ctx context.Context, w want) {
	k.log.Info("Pulling an image", "image", w.reference, "digest", w.digest)
	k.pulling = true
	k.start(func() {
		err := k.pullWith(ctx, w)
		if err == nil {
			if err := k.runtime.own(ctx, w.reference); err != nil {
				k.log.V(1).Info("Image is not noted as pulled, it stays if it does not fit", "image", w.reference, "reason", err.Error())
			}
		}
		k.pulls <- pulled{w, err}
		k.Wake(false)
	})
}

// takePull takes over how a pull has ended, if it has.
func (k *Keeper) takePull() {
	var p pulled
	select {
	case p = <-k.pulls:
	default:
		return
	}
	k.pulling = false
	w := p.want
	if p.err == nil {
		delete(k.failed, w.reference)
		delete(k.patience, w.reference)
		delete(k.patience, registry(w.reference))
		return
	}
	key, reason := registry(w.reference), v1alpha1.ImageRegistryUnreachable
	if refused(p.err) {
		key, reason = w.reference, v1alpha1.ImagePullFailed
		if !w.secret && len(w.secrets) > 0 {
			reason = v1alpha1.ImageLeftToKubelet
		}
	}
	if k.failed[w.reference] != reason {
		k.log.Error(p.err, "Image cannot be pulled, trying again", "image", w.reference, "reason", reason)
	}
	k.failed[w.reference] = reason
	k.patience.failed(key, k.clock.Now())
}

// pullWith gets an image by the digest that its pod runs, where that is known.
func (k *Keeper) pullWith(ctx context.Context, w want) error {
	var auths []*runtimeapi.AuthConfig
	if w.secret {
		auths = credentials(w.reference, k.secrets(w.secrets))
	}
	if len(auths) == 0 {
		auths = []*runtimeapi.AuthConfig{nil}
	}
	var errs error
	for _, auth := range auths {
		if byDigest := repository(w.reference) + "@" + w.digest; w.digest != "" && byDigest != w.reference {
			err := k.runtime.pull(ctx, byDigest, auth)
			if err == nil {
				err = k.runtime.tag(ctx, byDigest, w.reference)
			}
			if err == nil || !refused(err) {
				return err
			}
			// The registry may have dropped it: then what the tag names now.
		}
		err := k.runtime.pull(ctx, w.reference, auth)
		if err == nil || !refused(err) {
			return err
		}
		errs = errors.Join(errs, err)
	}
	return errs
}

// secrets are those that the snapshot has.
func (k *Keeper) secrets(names []string) []*corev1.Secret {
	var all []*corev1.Secret
	for _, name := range names {
		namespace, name, _ := strings.Cut(name, "/")
		object, ok := k.Objects.Get(snapshot.Secrets, namespace, name)
		secret := &corev1.Secret{}
		if ok && json.Unmarshal(object.Raw, secret) == nil {
			all = append(all, secret)
		}
	}
	return all
}
