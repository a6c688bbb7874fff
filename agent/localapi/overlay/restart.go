package overlay

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rekindle.edge/agent/localapi/rawobject"
	"rekindle.edge/agent/snapshot"
)

// Objects are the objects that entries belong to.
type Objects interface {
	Get(resource schema.GroupVersionResource, namespace, name string) (snapshot.Object, bool)
}

// Restart is called when the agent starts. A status of an earlier boot that says that the
// shutdown ended the pod is dropped: the API server has never seen it, so nobody has made
// another pod in its place, and kubelet would not start the pod again. Pods that run once
// keep it.
func Restart(o *Overlay, objects Objects) {
	for _, key := range o.Pending() {
		object, ok := objects.Get(key.Resource, key.Namespace, key.Name)
		if !ok || key.Resource != snapshot.Pods {
			continue
		}
		entry, ok := o.Of(key, object.UID)
		if !ok || entry.BootID == o.BootID || !endedByShutdown(entry.Status) || !restarts(object.Raw) {
			continue
		}
		o.Log.Info("Pod was ended by the shutdown and the API server does not know it, the pod starts again", "namespace", key.Namespace, "name", key.Name)
		if err := o.Drop(key); err != nil {
			o.Log.Error(err, "Pod stays ended", "namespace", key.Namespace, "name", key.Name)
		}
	}
}

// What kubelet gives a pod that it ends, or does not start any more, because the node
// shuts down.
const (
	shutdownReason    = "Terminated"
	notAdmittedReason = "NodeShutdown"
	shutdownMessage   = "Pod was terminated in response to imminent node shutdown."
)

// endedByShutdown says whether a pod's status is the one that kubelet gives when the node
// shuts down. A kubelet that starts again does not start such a pod. One whose programs
// ended well on the order to stop is Succeeded and has lost the reason: what tells it from
// others is the message of its disruption, since evictions have the same type and reason.
func endedByShutdown(status json.RawMessage) bool {
	s, err := rawobject.Decode(status)
	if err != nil || !terminal(s) {
		return false
	}
	if reason := s.Text("reason"); s.Text("phase") == string(corev1.PodFailed) && (reason == shutdownReason || reason == notAdmittedReason) {
		return true
	}
	for _, c := range conditionsOf(s) {
		if c.Text("type") == string(corev1.DisruptionTarget) && c.Text("status") == string(corev1.ConditionTrue) &&
			c.Text("reason") == corev1.PodReasonTerminationByKubelet && c.Text("message") == shutdownMessage {
			return true
		}
	}
	return false
}

// restarts says whether a pod's containers are always started again.
func restarts(pod []byte) bool {
	f, err := rawobject.Decode(pod)
	if err != nil {
		return false
	}
	policy := f.Part("spec").Text("restartPolicy")
	return policy == "" || policy == string(corev1.RestartPolicyAlways)
}
