package served

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"rekindle.edge/agent/localapi/collection"
	"rekindle.edge/agent/localapi/rawobject"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

// Edits decides what is changed for kubelet.
type Edits struct {
	// Policy is the node's.
	Policy func() v1alpha1.Offline
	// CutOff says whether the API server is out of reach.
	CutOff func() bool
	// Image says whether a container of a pod may take its image as it is on the node.
	Image func(pod types.UID, container, image string) bool
	// Boot says that this is the first start of the agent since the node's, so that kubelet
	// starts with it. Otherwise kubelet runs, and nothing but taints is changed.
	Boot bool

	// Pods are the UIDs of the node's pods.
	Pods func() []types.UID
	// Now is the time, which must not jump.
	Now func() time.Time

	// reported: kubelet has said in this boot that the node is ready.
	reported atomic.Bool

	mu sync.Mutex
	// first is when kubelet first read its pods, pods are those it read, and cut says
	// whether the API server was out of reach then. What a pod is served with it keeps:
	// kubelet looks at some of it only once, and each change of it is work.
	first time.Time
	pods  map[types.UID]bool
	cut   bool
	// looked are pods that kubelet was told to look at, see look.
	looked map[types.UID]bool
}

// sameKubelet is how soon after its first list kubelet may list again, for want of an
// answer, and still be the one that started with the node.
const sameKubelet = time.Minute

// For is what is done to a collection's objects; nil: nothing. List says that kubelet reads
// it from the start.
func (e *Edits) For(resource schema.GroupVersionResource, list bool) func(*collection.Item) []byte {
	switch resource {
	case snapshot.Nodes:
		return e.nodes()
	case snapshot.Pods:
		return e.podsOf(list)
	}
	return nil
}

func (e *Edits) nodes() func(*collection.Item) []byte {
	return func(item *collection.Item) []byte {
		return edit(item, func(node rawobject.Fields) {
			if e.Boot && !e.reported.Load() {
				unready(node)
			}
			if e.CutOff() {
				untaint(node)
			}
		})
	}
}

// NodeWritten is told of the node's status as kubelet wrote it.
func (e *Edits) NodeWritten(object []byte) {
	for _, c := range rawobject.Of(rawobject.Of(object)["status"]).List("conditions") {
		if c.Text("type") == "Ready" && c.Text("status") == "True" {
			e.reported.Store(true)
		}
	}
}

func (e *Edits) podsOf(list bool) func(*collection.Item) []byte {
	pods, cut := e.firstPods(list)
	policy := e.Policy()
	fast := policy.ReadinessProbes != v1alpha1.ReadinessProbesAsWritten
	local := cut && policy.ImagePullPolicy != v1alpha1.ImagePullAsWritten
	if len(pods) == 0 || !fast && !local {
		return nil
	}
	return func(item *collection.Item) []byte {
		if !pods[item.UID] {
			return item.Raw
		}
		return edit(item, func(pod rawobject.Fields) {
			if fast {
				fastProbes(pod, e.look(item.UID, pod))
			}
			if local {
				useLocal(pod, func(container, image string) bool { return e.Image(item.UID, container, image) })
			}
		})
	}
}

// look has kubelet probe a pod once more as soon as it has said that the pod runs. Kubelet
// does so by itself, but then often reads its own status from before that, finds nothing to
// probe, and waits for the whole period. A change of the pod makes it do so again: a failure
// that is tolerated more. Probes under way keep the number that they began with.
func (e *Edits) look(uid types.UID, pod rawobject.Fields) int32 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.looked[uid] && runsUnready(pod) {
		if e.looked == nil {
			e.looked = map[types.UID]bool{}
		}
		e.looked[uid] = true
	}
	if e.looked[uid] {
		return 1
	}
	return 0
}

// firstPods are the pods of kubelet's first list. Once it lists again later, it has been
// restarted, or lost its place: then pods are as they are.
func (e *Edits) firstPods(list bool) (map[types.UID]bool, bool) {
	if !e.Boot {
		return nil, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.first.IsZero():
		e.first, e.cut, e.pods = e.Now(), e.CutOff(), map[types.UID]bool{}
		for _, uid := range e.Pods() {
			e.pods[uid] = true
		}
	case list && e.Now().Sub(e.first) > sameKubelet:
		e.pods = nil
	}
	return e.pods, e.cut
}

// edit changes an object. One that comes out as it went in keeps its very bytes.
func edit(item *collection.Item, change func(rawobject.Fields)) []byte {
	object := rawobject.Of(item.Raw)
	before := len(object)
	spec, status := string(object["spec"]), string(object["status"])
	change(object)
	if before == len(object) && spec == string(object["spec"]) && status == string(object["status"]) {
		return item.Raw
	}
	return object.Encode()
}
