package source

import (
	"context"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"rekindle.edge/agent/host"
	"rekindle.edge/agent/timeline"
)

// podRetryMax is the longest pause between two attempts to reach the API server: a link
// that comes late must be noticed at once.
const podRetryMax = time.Second

// Pods watches the pods of one node at the API server.
type Pods struct {
	Clock host.Clock
	Wall  *Wall
	Node  string
}

// Run emits PodsListed, PodSeen and PodGone until its context ends. The client is one for
// the core API group.
func (p Pods) Run(ctx context.Context, client rest.Interface, emit Emit) {
	listWatch := cache.NewListWatchFromClient(client, "pods", "", fields.OneTermEqualSelector("spec.nodeName", p.Node))
	reflector := cache.NewReflectorWithOptions(listWatch, &corev1.Pod{}, &podStore{Pods: p, emit: emit},
		cache.ReflectorOptions{Name: "pods", Backoff: &wait.Backoff{
			Duration: podRetryMax / 4, Factor: 2, Jitter: 0.2, Steps: 10, Cap: podRetryMax,
		}})
	// The reflector's own loop logs every failure, which is one a second while the node is
	// cut off. Whether the server answers is known and told elsewhere.
	for ctx.Err() == nil {
		_ = reflector.ListAndWatchWithContext(ctx)
		host.Sleep(ctx, podRetryMax/2+rand.N(podRetryMax/2))
	}
}

// podStore takes what a reflector would keep, as events. Its methods are called by one
// goroutine at a time.
type podStore struct {
	Pods
	emit Emit
}

var _ cache.ReflectorStore = &podStore{}

// Add implements cache.ReflectorStore.
func (s *podStore) Add(object any) error {
	if pod, ok := object.(*corev1.Pod); ok {
		s.emit(see(pod, s.Clock.Boot(), s.Wall))
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (s *podStore) Update(object any) error { return s.Add(object) }

// Delete implements cache.ReflectorStore.
func (s *podStore) Delete(object any) error {
	if pod, ok := object.(*corev1.Pod); ok {
		s.emit(timeline.PodGone{Key: timeline.ViewPod(pod).Key})
	}
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *podStore) Replace(objects []any, _ string) error {
	list := timeline.PodsListed{At: s.Clock.Boot()}
	for _, object := range objects {
		if pod, ok := object.(*corev1.Pod); ok {
			list.Pods = append(list.Pods, see(pod, list.At, s.Wall))
		}
	}
	s.emit(list)
	return nil
}

// Resync implements cache.ReflectorStore.
func (s *podStore) Resync() error { return nil }

// see makes the event of a pod's status that arrived at a time.
func see(pod *corev1.Pod, at time.Duration, wall *Wall) timeline.PodSeen {
	seen := timeline.PodSeen{At: at, Pod: timeline.ViewPod(pod)}
	if since := seen.Pod.ReadySince; !since.IsZero() {
		// The condition's time is cut to seconds: the pod became Ready within the next one.
		if by, ok := wall.Convert(since.Add(time.Second)); ok {
			seen.ReadyBy = by
		}
	}
	return seen
}

// KubeletSaw makes the event of a pod's status that kubelet wrote at a time.
func KubeletSaw(pod *corev1.Pod, at time.Duration, wall *Wall) timeline.KubeletSaw {
	return timeline.KubeletSaw{PodSeen: see(pod, at, wall)}
}
