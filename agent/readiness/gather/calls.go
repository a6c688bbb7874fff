package gather

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"rekindle.edge/agent/gate/order"
	"rekindle.edge/agent/readiness"
	"rekindle.edge/agent/snapshot"
)

var services = schema.GroupVersionResource{Version: "v1", Resource: "services"}

// callCache is what the pods call, for as long as no pod or service has changed.
type callCache struct {
	stamp [2]uint64
	calls map[types.UID][]readiness.Call
}

// calls are the services that the commands or the environment of pods name, and that lead to
// a pod of this node. They are asked for where there are stages only.
func (g *Gatherer) calls(pods []cachedPod) map[types.UID][]readiness.Call {
	_, podsAt := g.Objects.List(snapshot.Pods)
	list, servicesAt := g.Objects.List(services)
	if stamp := [2]uint64{podsAt, servicesAt}; g.called.calls == nil || stamp != g.called.stamp {
		g.called = callCache{stamp: stamp, calls: callsOf(pods, list)}
	}
	return g.called.calls
}

func callsOf(pods []cachedPod, list []snapshot.Object) map[types.UID][]readiness.Call {
	all := map[types.UID][]readiness.Call{}
	texts := make([]order.Texts, len(pods))
	for i := range pods {
		texts[i] = order.TextsOf(pods[i].object.Raw)
	}
	for _, object := range list {
		var service corev1.Service
		if json.Unmarshal(object.Raw, &service) != nil || len(service.Spec.Selector) == 0 {
			continue
		}
		call := readiness.Call{Service: object.Namespace + "/" + object.Name}
		selector := labels.SelectorFromSet(service.Spec.Selector)
		for i := range pods {
			if pod := pods[i].pod; pod != nil && pod.Namespace == object.Namespace && selector.Matches(labels.Set(pod.Labels)) {
				call.Pods = append(call.Pods, pod.UID)
			}
		}
		if len(call.Pods) == 0 {
			continue
		}
		for i := range pods {
			if texts[i].Name(pods[i].object.Namespace, object.Namespace, object.Name) {
				uid := pods[i].object.UID
				all[uid] = append(all[uid], call)
			}
		}
	}
	return all
}
