package controllers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"rekindle.edge/api/v1alpha1"
)

// statusDelay is how long a change waits for others before the status of a policy is summed
// up again: however many nodes report, a policy is written at most once in this time.
const statusDelay = time.Second

// policyReconciler keeps the status of one policy in step with its nodes. The key is the
// name of the policy.
type policyReconciler struct {
	client.Client
	recorder events.EventRecorder
	clock    clock.PassiveClock
}

// Reconcile makes one write if the status changed, none otherwise.
func (r *policyReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	policy, err := getOrNil(ctx, r, req.Name, &v1alpha1.EdgeRecoveryPolicy{})
	if err != nil || policy == nil || !policy.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, err
	}
	started := r.clock.Now()
	status, err := r.sumUp(ctx, policy)
	if err != nil {
		return reconcile.Result{}, err
	}
	aggregationSeconds.Observe(r.clock.Since(started).Seconds())
	if equality.Semantic.DeepEqual(policy.Status, status) {
		return reconcile.Result{}, nil
	}

	ctrl.LoggerFrom(ctx).Info("Writing policy status", "EdgeRecoveryPolicy", klog.KObj(policy), "nodes", status.Nodes)
	// The status is written whole (it has one writer) and only onto the version that it was
	// computed from: the conditions' transition times come from there.
	next := policy.DeepCopy()
	next.Status = status
	err = r.Status().Update(ctx, next, client.FieldOwner(fieldOwner))
	countWrite("status", err)
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: statusDelay}, nil
	case apierrors.IsNotFound(err): // deleted meanwhile
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("writing status of policy %s: %w", policy.Name, err)
	}
	tell(r.recorder, next, policyEvents(&policy.Status, &status))
	return reconcile.Result{}, nil
}

// sumUp reads from the cache, without copies: these are all nodes.
func (r *policyReconciler) sumUp(ctx context.Context, policy *v1alpha1.EdgeRecoveryPolicy) (v1alpha1.EdgeRecoveryPolicyStatus, error) {
	var none v1alpha1.EdgeRecoveryPolicyStatus
	var policies v1alpha1.EdgeRecoveryPolicyList
	var nodes corev1.NodeList
	var recoveries v1alpha1.NodeRecoveryList
	for _, list := range []client.ObjectList{&policies, &nodes, &recoveries} {
		if err := r.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return none, fmt.Errorf("listing %T: %w", list, err)
		}
	}
	ranked := rank(policies.Items)
	members := membersOf(policy, ranked, nodes.Items, recoveries.Items)
	var problem error
	if self := candidateOf(policy, ranked); self != nil {
		problem = self.problem
	}
	now := metav1.NewTime(r.clock.Now().UTC().Truncate(time.Second))
	return aggregate(policy, problem, members, now), nil
}

func (r *policyReconciler) setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("policy").
		Watches(&v1alpha1.EdgeRecoveryPolicy{}, delayed(r.everyPolicy), builder.WithPredicates(whenUpdated(generationMoved))).
		// Of a status that somebody else wrote, its own policy alone is put right. Our own
		// writes come by here too: the pass after one finds nothing to change, and ends it.
		Watches(&v1alpha1.EdgeRecoveryPolicy{}, delayed(itself), builder.WithPredicates(whenUpdated(policyStatusMoved))).
		Watches(&corev1.Node{}, delayed(r.everyPolicy), builder.WithPredicates(whenUpdated(nodeMovedOrLost))).
		Watches(&v1alpha1.NodeRecovery{}, delayed(policyOf)).
		Watches(&v1alpha1.NodeRecovery{}, telling(r.recorder)).
		Complete(r)
}

// everyPolicy is asked for when a policy or a node changes: each may be selected, or
// overridden, otherwise than before. There are few.
func (r *policyReconciler) everyPolicy(ctx context.Context, _ client.Object) []string {
	var policies v1alpha1.EdgeRecoveryPolicyList
	if err := r.List(ctx, &policies, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing policies")
		return nil
	}
	names := make([]string, 0, len(policies.Items))
	for i := range policies.Items {
		names = append(names, policies.Items[i].Name)
	}
	return names
}

func itself(_ context.Context, policy client.Object) []string {
	return []string{policy.GetName()}
}

// policyOf returns the policy that the NodeRecovery was rendered from.
func policyOf(_ context.Context, object client.Object) []string {
	return []string{object.(*v1alpha1.NodeRecovery).Spec.PolicyName}
}

func policyStatusMoved(before, after client.Object) bool {
	return !equality.Semantic.DeepEqual(before.(*v1alpha1.EdgeRecoveryPolicy).Status, after.(*v1alpha1.EdgeRecoveryPolicy).Status)
}

func nodeMovedOrLost(before, after client.Object) bool {
	return nodeMoved(before, after) || outOfReach(before.(*corev1.Node)) != outOfReach(after.(*corev1.Node))
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// delayed puts policies into the queue statusDelay from now. One that is there already
// keeps its time, so a policy is never put off for ever.
func delayed(policies func(context.Context, client.Object) []string) handler.EventHandler {
	add := func(ctx context.Context, object client.Object, q queue) {
		for _, name := range policies(ctx, object) {
			q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}, statusDelay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { add(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			add(ctx, e.ObjectOld, q)
			add(ctx, e.ObjectNew, q)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { add(ctx, e.Object, q) },
	}
}
