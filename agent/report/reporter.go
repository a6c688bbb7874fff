package report

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

const resource = "noderecoveries"

// writeTimeout bounds one write.
const writeTimeout = 10 * time.Second

// Reporter keeps the status of one NodeRecovery in step with the store.
type Reporter struct {
	// Node is the name of the Node and so of its NodeRecovery.
	Node   string
	Client rest.Interface
	// Facts gives what is in the store.
	Facts func() Facts
	// Changed signals that Facts gives something else.
	Changed <-chan struct{}
	// Adopt takes a spec over durably; nil: built-in defaults.
	Adopt func(context.Context, *snapshot.Spec) error
	// Heard is called when the spec is what the API server says; unset: nobody asks.
	Heard func()
	// Restore takes over durably what was reported before, while RecordsLost.
	Restore func(context.Context, []v1alpha1.Recovery) error
	// Since is when the API server began to answer; zero: it does not. Changed signals it too.
	Since func() time.Time
	// Jitter bounds the random wait before the first write after that, and of a session:
	// when a cluster comes back, its nodes must not write all at once.
	Jitter time.Duration
	// Wall is the time of day.
	Wall func() time.Time
}

// retry is the wait before the next attempt after a number of failures in a row.
func retry(failures int) time.Duration {
	longest := min(30*time.Second, 500*time.Millisecond<<min(failures, 10))
	return longest/2 + rand.N(longest/2)
}

// Run watches and writes until its context ends.
func (r Reporter) Run(ctx context.Context) {
	log := logr.FromContextOrDiscard(ctx)
	objects := newWatcher(r.Client, r.Node)
	go objects.run(ctx)

	wake := time.NewTimer(time.Hour)
	defer wake.Stop()
	failures := 0
	var pace pace
	var kept kept
	for {
		select {
		case <-ctx.Done():
			return
		case <-objects.changed:
		case <-r.Changed:
		case <-wake.C:
		}
		object, known := objects.latest()
		if !known {
			continue
		}
		if wait := pace.wait(time.Now(), r.Since(), r.Jitter); wait > 0 {
			wake.Reset(wait)
			// The spec does not wait: what the node does depends on it.
			if err := r.adopt(ctx, object); err != nil {
				log.Error(err, "Spec could not be stored, trying again")
			}
			continue
		}
		err := r.reconcile(ctx, object, &kept)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			failures = 0
		case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
			// Someone else wrote, or the object is gone: the watch brings what is there now.
			wake.Reset(pace.hold(time.Now(), retry(0)))
		default:
			if failures == 0 {
				log.Error(err, "Status could not be written, trying again")
			}
			wake.Reset(pace.hold(time.Now(), retry(failures)))
			failures++
		}
	}
}

// kept is what the server made of the status that was last written. A cluster whose CRD is
// older than the agent drops fields; writing them again and again would change nothing.
type kept struct{ want, got v1alpha1.NodeRecoveryStatus }

// reconcile adopts the spec and writes the status if it differs from what the store says.
func (r Reporter) reconcile(ctx context.Context, object *v1alpha1.NodeRecovery, last *kept) error {
	if err := r.adopt(ctx, object); err != nil || object == nil {
		return err
	}
	if r.Facts().RecordsLost {
		// Before the first write: it would put an empty history in the place of the only one.
		if err := r.Restore(ctx, object.Status.Recoveries); err != nil {
			return err
		}
	}
	status := Project(r.Facts(), object.Status, metav1.NewTime(r.Wall()))
	if equality.Semantic.DeepEqual(status, object.Status) {
		return nil
	}
	// What the server has may lack fields: whether the snapshot's numbers are worth a write
	// is asked of what was wanted.
	if equality.Semantic.DeepEqual(object.Status, last.got) && equality.Semantic.DeepEqual(ridesAlong(status, last.want), last.want) {
		return nil
	}
	if r.Since().IsZero() {
		// A write must not be what finds out that the server is back, ahead of the jitter.
		return r.ask(ctx)
	}
	got, err := r.write(ctx, object, status)
	if err != nil {
		return err
	}
	if !equality.Semantic.DeepEqual(status, got) {
		logr.FromContextOrDiscard(ctx).Info("API server keeps a part of the status only, is the CRD older than the agent?", "node", r.Node)
	}
	*last = kept{want: status, got: got}
	return nil
}

func (r Reporter) adopt(ctx context.Context, object *v1alpha1.NodeRecovery) (err error) {
	defer func() {
		if err == nil && r.Heard != nil {
			r.Heard()
		}
	}()
	var spec *snapshot.Spec
	if object != nil {
		spec = &snapshot.Spec{Generation: object.Generation, Spec: object.Spec}
	}
	if equality.Semantic.DeepEqual(spec, r.Facts().Spec) {
		return nil
	}
	log := logr.FromContextOrDiscard(ctx)
	if spec == nil {
		log.Info("No policy applies to the node, using built-in defaults")
	} else {
		log.Info("Taking over the policy", "policy", spec.Spec.PolicyName, "generation", spec.Generation)
	}
	return r.Adopt(ctx, spec)
}

// ask finds out whether the API server answers; Changed tells when it does.
func (r Reporter) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if err := r.Client.Get().Resource(resource).Name(r.Node).Do(ctx).Error(); err != nil {
		return fmt.Errorf("reading NodeRecovery %s before its status is written: %w", r.Node, err)
	}
	return nil
}

// write replaces the status and returns what the server has kept of it. The resource
// version guards against writing over an object that was re-created or over a status that
// another writer has just changed.
func (r Reporter) write(ctx context.Context, object *v1alpha1.NodeRecovery, status v1alpha1.NodeRecoveryStatus) (v1alpha1.NodeRecoveryStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	object = object.DeepCopy()
	object.Status = status
	object.APIVersion, object.Kind = v1alpha1.GroupVersion.String(), "NodeRecovery"
	result := &v1alpha1.NodeRecovery{}
	err := r.Client.Put().Resource(resource).Name(r.Node).SubResource("status").Body(object).Do(ctx).Into(result)
	if err != nil {
		return result.Status, fmt.Errorf("writing the status of NodeRecovery %s: %w", r.Node, err)
	}
	logr.FromContextOrDiscard(ctx).V(1).Info("Status written", "node", r.Node, "recoveries", len(status.Recoveries))
	return result.Status, nil
}
