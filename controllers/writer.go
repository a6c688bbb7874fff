package controllers

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rekindle.edge/api/v1alpha1"
)

// carryOut makes the one write that a plan asks for, if any.
//
// A conflict says that the object is not the one that the plan was made for (its UID is a
// precondition). The cache is behind then, and what it still has to hear brings the node
// back here.
func carryOut(ctx context.Context, c client.Client, p plan) error {
	log := ctrl.LoggerFrom(ctx)
	switch {
	case p.apply != nil:
		log.Info("Applying NodeRecovery", "NodeRecovery", klog.KObj(p.apply), "policy", p.apply.Spec.PolicyName,
			"policyGeneration", p.apply.Spec.PolicyGeneration, "pool", p.apply.Spec.Pool)
		config, err := applyConfiguration(p.apply)
		if err != nil {
			return err
		}
		err = c.Apply(ctx, config, client.FieldOwner(fieldOwner), client.ForceOwnership)
		countWrite("apply", err)
		if err != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("applying NodeRecovery %s of policy %s: %w", p.apply.Name, p.apply.Spec.PolicyName, err)
		}
	case p.remove != nil:
		log.Info("Deleting NodeRecovery", "NodeRecovery", klog.KObj(p.remove), "policy", p.remove.Spec.PolicyName)
		err := client.IgnoreNotFound(c.Delete(ctx, p.remove.DeepCopy(), client.Preconditions{UID: &p.remove.UID}))
		countWrite("delete", err)
		if err != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("deleting NodeRecovery %s: %w", p.remove.Name, err)
		}
	}
	return nil
}

// applyConfiguration returns the object as what is applied: everything but the status,
// which is the agent's.
func applyConfiguration(recovery *v1alpha1.NodeRecovery) (runtime.ApplyConfiguration, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(recovery)
	if err != nil {
		return nil, fmt.Errorf("converting NodeRecovery %s: %w", recovery.Name, err)
	}
	delete(content, "status")
	object := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	return client.ApplyConfigurationFromUnstructured(object), nil
}
