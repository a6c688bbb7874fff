package gather

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"rekindle.edge/agent/readiness"
	"rekindle.edge/agent/warmup/images"
)

// Content says what of an image is lost; empty: nothing that can be seen.
type Content interface {
	// Begin begins a pass. It is an error if some of what is known cannot be read.
	Begin() error
	Look(ctx context.Context, asked images.Asked) string
}

// imagesOf says what the node has of a pod's images: of containers of every kind that a
// start makes, and of image volumes.
func (g *Gatherer) imagesOf(ctx context.Context, pod *corev1.Pod, known imageCache, credentials credentials) []readiness.Image {
	running := map[string]string{}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, status := range statuses {
			running[status.Name] = status.ImageID
		}
	}
	var all []readiness.Image
	for _, use := range usesOf(pod) {
		found := known[use.name]
		image := readiness.Image{User: use.user, Name: use.name, Always: use.policy == corev1.PullAlways, Present: found != nil}
		if found != nil {
			image.Pinned = found.Pinned
			image.Unproven = running[use.container] == ""
			image.Damaged = g.damaged(ctx, pod, use, found.Id)
			image.Changed = !is(found, running[use.container])
			image.Refused = credentials.refuse(g.Objects, pod, use.name, found.Id)
			image.Pulling = credentials.pulling[use.name]
		}
		all = append(all, image)
	}
	return all
}

// imageUse is one use of an image by a pod.
type imageUse struct {
	name string
	// user in words; container is its name, empty for a volume.
	user, container string
	policy          corev1.PullPolicy
	// program that the pod names; empty: the image's own, or none for a volume.
	program string
	volume  bool
}

func usesOf(pod *corev1.Pod) []imageUse {
	var uses []imageUse
	for _, containers := range []struct {
		kind string
		all  []corev1.Container
	}{{"init container", pod.Spec.InitContainers}, {"container", pod.Spec.Containers}} {
		for _, c := range containers.all {
			use := imageUse{name: c.Image, user: fmt.Sprintf("%s %q", containers.kind, c.Name), container: c.Name, policy: c.ImagePullPolicy}
			if len(c.Command) > 0 {
				use.program = c.Command[0]
			}
			uses = append(uses, use)
		}
	}
	for _, v := range pod.Spec.Volumes {
		if v.Image != nil && v.Image.Reference != "" {
			uses = append(uses, imageUse{name: v.Image.Reference, user: fmt.Sprintf("volume %q", v.Name), policy: v.Image.PullPolicy, volume: true})
		}
	}
	return uses
}

// is says whether an image is the one that a container's status names: by its id, or by the
// digest of its manifest. Empty: the container has none yet.
func is(image *runtimeapi.Image, imageID string) bool {
	_, digest, named := strings.Cut(imageID, "@")
	if !named {
		digest = imageID
	}
	return digest == "" || digest == image.Id || slices.ContainsFunc(image.RepoDigests, func(repo string) bool {
		return strings.HasSuffix(repo, "@"+digest)
	})
}

// damaged says what of an image's content is lost. Its configuration is looked at also where
// nothing more is known of how the runtime keeps it.
func (g *Gatherer) damaged(ctx context.Context, pod *corev1.Pod, use imageUse, id string) string {
	algorithm, digest, ok := strings.Cut(id, ":")
	if g.blobs == "" || !ok {
		return ""
	}
	if g.Content != nil {
		asked := images.Asked{
			Name: use.name, ID: id, Program: use.program, Volume: use.volume, Blobs: g.Root + g.blobs,
			// A runtime class may have a snapshotter of its own.
			Overlay: g.overlay && pod.Spec.RuntimeClassName == nil,
		}
		if problem := g.Content.Look(ctx, asked); problem != "" {
			return problem
		}
	}
	dir := filepath.Join(g.Root+g.blobs, algorithm)
	info, err := os.Stat(filepath.Join(dir, digest))
	if err != nil {
		// Only where other content is to be seen.
		_, err := os.Stat(dir)
		return lostIf(err == nil)
	}
	return lostIf(info.Size() == 0)
}

func lostIf(lost bool) string {
	if lost {
		return "its configuration is missing or empty on the disk"
	}
	return ""
}
