package gather

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"rekindle.edge/agent/readiness"
)

// imagesOf says what the node has of a pod's images.
func (g *Gatherer) imagesOf(pod *corev1.Pod, known imageCache, credentials credentials) []readiness.Image {
	running := map[string]string{}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, status := range statuses {
			running[status.Name] = status.ImageID
		}
	}
	var images []readiness.Image
	for _, c := range containersOf(pod) {
		found := known[c.Image]
		image := readiness.Image{Container: c.Name, Name: c.Image, Always: c.ImagePullPolicy == corev1.PullAlways, Present: found != nil}
		if found != nil {
			image.Pinned = found.Pinned
			image.Damaged = g.damaged(found.Id)
			image.Changed = !is(found, running[c.Name])
			image.Refused = credentials.refuse(g.Objects, pod, c.Image, found.Id)
		}
		images = append(images, image)
	}
	return images
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

// damaged says whether the content that an image's id names, its configuration, is missing
// or empty, as after a power cut during a pull.
func (g *Gatherer) damaged(id string) bool {
	algorithm, digest, ok := strings.Cut(id, ":")
	if g.blobs == "" || !ok {
		return false
	}
	dir := filepath.Join(g.Root+g.blobs, algorithm)
	info, err := os.Stat(filepath.Join(dir, digest))
	if err != nil {
		// Only where other content is to be seen.
		_, err := os.Stat(dir)
		return err == nil
	}
	return info.Size() == 0
}
