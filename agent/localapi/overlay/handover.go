package overlay

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"rekindle.edge/agent/snapshot"
)

// retryEvery is the pace at which what is pending is tried again, jittered.
const retryEvery = 2 * time.Second

// askTimeout bounds one handover.
const askTimeout = 10 * time.Second

// Run hands over what is pending whenever linked says that the API server answers, until
// ctx ends.
func (o *Overlay) Run(ctx context.Context, linked func() bool) {
	for ctx.Err() == nil {
		if linked() {
			o.handOverAll(ctx, linked)
		}
		select {
		case <-ctx.Done():
		case <-o.kick:
		case <-time.After(wait.Jitter(retryEvery/2, 1)):
		}
	}
}

func (o *Overlay) handOverAll(ctx context.Context, linked func() bool) {
	for _, key := range o.Pending() {
		if ctx.Err() != nil || !linked() {
			return
		}
		asking, cancel := context.WithTimeout(ctx, askTimeout)
		err := o.HandOver(asking, key)
		cancel()
		if err != nil {
			o.Log.V(1).Info("Status that was written on the node is still pending", "namespace", key.Namespace, "name", key.Name, "reason", err.Error())
		}
	}
}

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
		if !ok || entry.BootID == o.BootID || !EndedByShutdown(entry.Status) || !restarts(object.Raw) {
			continue
		}
		o.Log.Info("Pod was ended by the shutdown and the API server does not know it, the pod starts again", "namespace", key.Namespace, "name", key.Name)
		if err := o.Drop(key); err != nil {
			o.Log.Error(err, "Pod stays ended", "namespace", key.Namespace, "name", key.Name)
		}
	}
}

// restarts says whether a pod's containers are always started again.
func restarts(pod []byte) bool {
	f, err := decode(pod)
	if err != nil {
		return false
	}
	policy := f.part("spec").text("restartPolicy")
	return policy == "" || policy == "Always"
}
