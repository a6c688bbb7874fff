package gather

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"rekindle.edge/agent/gate/order"
	"rekindle.edge/agent/mirror"
	"rekindle.edge/agent/readiness"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

// podCache keeps decoded pods for as long as they do not change.
type podCache map[types.UID]cachedPod

type cachedPod struct {
	object snapshot.Object
	pod    *corev1.Pod // nil: it does not decode
	needs  mirror.Needs
	// place in the start-up by a policy, and the place's name.
	placedBy *v1alpha1.NodeRecoverySpec
	place    int
	stage    string
}

// objectCache keeps what was found in objects that pods refer to.
type objectCache map[snapshot.Scope]cachedObject

type cachedObject struct {
	uid     types.UID
	version string
	broken  bool
	// keys of a secret or configmap.
	keys map[string]bool
}

// shouldRun says whether a pod is to come back: it has not ended, and nobody deletes it.
func shouldRun(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed && !mirror.Over(pod)
}

// stored are the pods of the list that should run, or do not decode.
func (g *Gatherer) stored(node string) []cachedPod {
	list, _ := g.Objects.List(snapshot.Pods)
	kept := podCache{}
	var pods []cachedPod
	for _, object := range list {
		cached, ok := g.pods[object.UID]
		if !ok || cached.object.ResourceVersion != object.ResourceVersion {
			cached, ok = cachedPod{object: object, pod: &corev1.Pod{}}, false
			if json.Unmarshal(object.Raw, cached.pod) != nil {
				cached.pod = nil
			}
		}
		if cached.pod != nil && (!ok || len(cached.needs.Drivers) > 0 || hasClaims(cached.pod)) {
			// What is behind a claim changes without the pod.
			cached.needs = mirror.NeedsOf(node, cached.pod, g.Objects.Get)
		}
		kept[object.UID] = cached
		if cached.pod == nil || shouldRun(cached.pod) {
			pods = append(pods, cached)
		}
	}
	g.pods = kept
	return pods
}

// put gives the pods their places in the start-up. By a policy that cannot be read there
// are no stages, as at a start.
func (g *Gatherer) put(pods []cachedPod, policy *v1alpha1.NodeRecoverySpec) {
	if policy == nil || len(policy.StartupOrdering.Stages) == 0 {
		return
	}
	places, err := order.Places(policy.StartupOrdering)
	if err != nil {
		return
	}
	for i := range pods {
		if pod := &pods[i]; pod.placedBy != policy {
			pod.placedBy = policy
			pod.place, pod.stage = places(pod.object.Raw)
			g.pods[pod.object.UID] = *pod
		}
	}
}

// look fills in the pods, with what the runtime said of images; nil: it said nothing.
func (g *Gatherer) look(facts *readiness.Facts, pods []cachedPod, images func(*corev1.Pod) []readiness.Image) {
	objects := objectCache{}
	var calls map[types.UID][]readiness.Call
	if facts.Policy != nil && len(facts.Policy.StartupOrdering.Stages) > 0 {
		calls = g.calls(pods)
	}
	for _, cached := range pods {
		if cached.pod == nil {
			name := metav1.ObjectMeta{Namespace: cached.object.Namespace, Name: cached.object.Name, UID: cached.object.UID}
			facts.Pods = append(facts.Pods, readiness.Pod{Pod: &corev1.Pod{ObjectMeta: name}, Objects: []readiness.Object{
				{Resource: "pods", Name: name.Name, Place: "The list", State: readiness.ObjectUnreadable},
			}})
			continue
		}
		pod := readiness.Pod{Pod: cached.pod, Drivers: cached.needs.Drivers}
		if cached.placedBy == facts.Policy {
			pod.Stage, pod.StageName, pod.Calls = cached.place, cached.stage, calls[cached.pod.UID]
		}
		for _, use := range cached.needs.Uses {
			if !use.Waived {
				pod.Objects = append(pod.Objects, g.object(use, objects))
			}
			pod.Attached = pod.Attached || use.Resource.Resource == "volumeattachments" && !g.shared(cached.needs)
		}
		for _, key := range cached.needs.Tokens {
			if _, ok := g.Objects.Token(key); !ok {
				pod.TokensMissing++
			}
		}
		if images != nil {
			pod.Images = images(cached.pod)
		}
		facts.Pods = append(facts.Pods, pod)
	}
	g.objects = objects
}

func hasClaims(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil })
}

// object says what the snapshot has of one reference. What was looked into goes into kept.
func (g *Gatherer) object(use mirror.Use, kept objectCache) readiness.Object {
	o := readiness.Object{Resource: use.Resource.GroupResource().String(), Name: use.Name, Place: use.Place, Optional: use.Optional}
	if use.Resource == snapshot.Secrets {
		o.Name = ""
	}
	object, ok := g.Objects.Get(use.Resource, use.Namespace, use.Name)
	if !ok {
		o.State = readiness.ObjectUnknown
		if g.Objects.Known(use.Scope) {
			o.State = readiness.ObjectAbsent
		}
		return o
	}
	cached, ok := g.objects[use.Scope]
	if !ok || cached.uid != object.UID || cached.version != object.ResourceVersion {
		cached = decode(use.Resource, object)
	}
	kept[use.Scope] = cached
	if cached.broken {
		o.State = readiness.ObjectUnreadable
	}
	for _, key := range use.Keys {
		if cached.keys != nil && !cached.keys[key] {
			o.MissingKeys = append(o.MissingKeys, key)
		}
	}
	return o
}

func decode(resource schema.GroupVersionResource, object snapshot.Object) cachedObject {
	cached := cachedObject{uid: object.UID, version: object.ResourceVersion}
	var holds struct {
		metav1.ObjectMeta `json:"metadata"`
		Data              map[string]json.RawMessage `json:"data"`
		BinaryData        map[string]json.RawMessage `json:"binaryData"`
	}
	var err error
	switch resource.Resource {
	case "secrets", "configmaps":
		err = json.Unmarshal(object.Raw, &holds)
		cached.keys = map[string]bool{}
		for _, data := range []map[string]json.RawMessage{holds.Data, holds.BinaryData} {
			for key := range data {
				cached.keys[key] = true
			}
		}
	default:
		err = json.Unmarshal(object.Raw, &metav1.PartialObjectMetadata{})
	}
	cached.broken = err != nil
	return cached
}

// shared says whether every volume of a pod may be used by many nodes at once.
func (g *Gatherer) shared(needs mirror.Needs) bool {
	for _, use := range needs.Uses {
		if use.Resource.Resource != "persistentvolumes" {
			continue
		}
		object, _ := g.Objects.Get(use.Resource, "", use.Name)
		var volume corev1.PersistentVolume
		if json.Unmarshal(object.Raw, &volume) != nil || !slices.Contains(volume.Spec.AccessModes, corev1.ReadWriteMany) {
			return false
		}
	}
	return true
}
