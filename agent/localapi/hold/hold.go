// Package hold keeps volumes back that may be attached to another node by now. Kubelet
// mounts a volume before it makes a pod's sandbox, and asks for the VolumeAttachment before
// it mounts: a pod whose attachment is not answered waits, and the list of pods stays whole.
package hold

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"rekindle.edge/agent/localapi/collection"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

const (
	// noticed is how long kubelet must have waited for an attachment until its pod counts
	// as held: with the link up the mirror is in step within less.
	noticed = 5 * time.Second
	// shown is how long a hold stays a finding when it is over. While the node was cut off
	// nobody could see it.
	shown = 10 * time.Minute
)

// Objects is what is needed of the snapshot.
type Objects interface {
	volumes
	List(schema.GroupVersionResource) ([]snapshot.Object, uint64)
	InStep(schema.GroupVersionResource) (time.Time, bool)
	Trusted() (bool, string)
}

// Holding decides what is kept back, and tells of it.
type Holding struct {
	clock clock.PassiveClock
	// marker is a file that is there once the mirror was in step in this boot.
	marker string

	mu      sync.Mutex
	objects Objects
	policy  func() v1alpha1.Offline
	// before is when the list of pods was in step when the agent started. Times are not
	// compared otherwise: a clock that starts in the past would call that fresh.
	before time.Time
	synced bool
	// asked is since when kubelet waits for an attachment.
	asked map[string]time.Time
	// refused says that kubelet was refused its list of pods.
	refused bool
	told    told
}

// New makes a holding. Marker is the path of a file in a directory that does not outlive the
// boot.
func New(clock clock.PassiveClock, marker string) *Holding {
	return &Holding{clock: clock, marker: marker, asked: map[string]time.Time{}}
}

// Begin is called with the open snapshot, before the mirror runs.
func (h *Holding) Begin(objects Objects, policy func() v1alpha1.Offline) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.objects, h.policy = objects, policy
	h.before, _ = objects.InStep(snapshot.Pods)
	_, err := os.Stat(h.marker)
	h.synced = err == nil
}

// Why says why an object is not given out, empty if it is.
func (h *Holding) Why(resource schema.GroupVersionResource, item *collection.Item) string {
	if resource != attachments {
		return ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.holds(item.Raw) {
		return ""
	}
	if h.asked[item.Name].IsZero() {
		h.asked[item.Name] = h.clock.Now()
	}
	return "volume attachment " + item.Name + " is held until the API server was heard in this boot: the volume may be attached elsewhere by now (offline.attachedVolumes: Hold)"
}

// ListRefused is told that kubelet was refused its list of pods.
func (h *Holding) ListRefused() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refused = true
}

func (h *Holding) holds(attachment []byte) bool {
	return !h.inStep() && h.policy().AttachedVolumes != v1alpha1.AttachedVolumesStart && exclusive(attachment, h.objects)
}

// inStep says whether the mirror has read the node's pods in this boot.
func (h *Holding) inStep() bool {
	if h.synced {
		return true
	}
	at, ok := h.objects.InStep(snapshot.Pods)
	if !ok || at.Equal(h.before) {
		return false
	}
	h.synced = true
	// Without the file an agent that is restarted holds again until it has heard itself.
	_ = errors.Join(os.MkdirAll(filepath.Dir(h.marker), 0o700), os.WriteFile(h.marker, nil, fs.FileMode(0o600)))
	return true
}

// Pods are the pods that wait now for an attachment that is held.
func (h *Holding) Pods() []Pod {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.objects == nil || len(h.asked) == 0 {
		return nil
	}
	var held []string // volumes
	for name, since := range h.asked {
		attachment, ok := h.objects.Get(attachments, "", name)
		if !ok || !h.holds(attachment.Raw) {
			delete(h.asked, name)
			continue
		}
		if volume := volumeOf(attachment.Raw); volume != "" && h.clock.Since(since) >= noticed {
			held = append(held, volume)
		}
	}
	if len(held) == 0 {
		return nil
	}
	slices.Sort(held)
	objects, _ := h.objects.List(snapshot.Pods)
	return waiting(objects, held, h.objects)
}
