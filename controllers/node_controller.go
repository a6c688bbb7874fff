package controllers

import (
	"context"
	"fmt"
	"maps"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"rekindle.edge/api/v1alpha1"
)

// nodeReconciler keeps the NodeRecovery of one node as the policies want it. The key is the
// name of the node, which is also the name of the NodeRecovery.
type nodeReconciler struct {
	client.Client
}

// Reconcile makes at most one write; none if the object is as it shall be.
func (r *nodeReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	node, err := getOrNil(ctx, r, req.Name, &corev1.Node{})
	if err != nil {
		return reconcile.Result{}, err
	}
	live, err := getOrNil(ctx, r, req.Name, &v1alpha1.NodeRecovery{})
	if err != nil {
		return reconcile.Result{}, err
	}
	var policies v1alpha1.EdgeRecoveryPolicyList
	// Only read from here on, and there are as many passes as nodes: no copy.
	if err := r.List(ctx, &policies, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing policies: %w", err)
	}
	return reconcile.Result{}, carryOut(ctx, r, planNode(rank(policies.Items), node, live))
}

// getOrNil returns the cached object of that name, nil if there is none.
func getOrNil[T client.Object](ctx context.Context, reader client.Reader, name string, object T) (T, error) {
	var none T
	err := reader.Get(ctx, types.NamespacedName{Name: name}, object, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("reading %T %s: %w", object, name, err)
	}
	return object, nil
}

func (r *nodeReconciler) setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("node").
		For(&corev1.Node{}, builder.WithPredicates(whenUpdated(nodeMoved))).
		Watches(&v1alpha1.NodeRecovery{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(whenUpdated(recoveryEdited))).
		Watches(&v1alpha1.EdgeRecoveryPolicy{}, handler.EnqueueRequestsFromMapFunc(r.everyNode), builder.WithPredicates(whenUpdated(generationMoved))).
		// One write a node, each waiting for the API server: a policy for thousands of nodes
		// is rolled out by a few at once. What a pass reads is in memory.
		WithOptions(controller.Options{MaxConcurrentReconciles: 8}).
		Complete(r)
}

// everyNode is asked for when a policy changes. Which nodes it selected before is no longer
// to be seen, so every node is looked at again: in memory, and without a write where
// nothing changes.
func (r *nodeReconciler) everyNode(ctx context.Context, _ client.Object) []reconcile.Request {
	var nodes corev1.NodeList
	if err := r.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing nodes")
		return nil
	}
	requests := make([]reconcile.Request, 0, len(nodes.Items))
	for i := range nodes.Items {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: nodes.Items[i].Name}})
	}
	return requests
}

// whenUpdated lets every creation and deletion pass, and updates that matter: those that
// changed says so of, and those of a resync (same version), which mend what was missed.
func whenUpdated(changed func(before, after client.Object) bool) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() ||
			e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
			changed(e.ObjectOld, e.ObjectNew)
	}}
}

func nodeMoved(before, after client.Object) bool {
	return !maps.Equal(before.GetLabels(), after.GetLabels())
}

func generationMoved(before, after client.Object) bool {
	return before.GetGeneration() != after.GetGeneration() ||
		before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero()
}

func recoveryEdited(before, after client.Object) bool {
	return generationMoved(before, after) ||
		!maps.Equal(before.GetLabels(), after.GetLabels()) ||
		!reflect.DeepEqual(before.GetOwnerReferences(), after.GetOwnerReferences())
}
