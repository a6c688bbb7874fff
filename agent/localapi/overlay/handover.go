package overlay

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
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
