package controllers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"rekindle.edge/api/v1alpha1"
)

// Setup adds the controllers, their metrics and the readiness check to a manager.
func Setup(mgr ctrl.Manager) error {
	ready, err := cacheCheck(mgr)
	if err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("cache", ready); err != nil {
		return fmt.Errorf("adding readiness check: %w", err)
	}
	if err := registerMetrics(metrics.Registry, mgr.GetClient()); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	if err := (&nodeReconciler{mgr.GetClient()}).setup(mgr); err != nil {
		return fmt.Errorf("setting up node controller: %w", err)
	}
	policy := &policyReconciler{
		Client:   mgr.GetClient(),
		recorder: mgr.GetEventRecorder(fieldOwner),
		clock:    clock.RealClock{},
	}
	if err := policy.setup(mgr); err != nil {
		return fmt.Errorf("setting up policy controller: %w", err)
	}
	return nil
}

// cacheCheck returns a check that passes once the cache of every kind is in step. The
// informers are asked for here, not when the controllers start: a standby fills its cache
// too, and takes over without a list.
func cacheCheck(mgr ctrl.Manager) (healthz.Checker, error) {
	for _, object := range []client.Object{&corev1.Node{}, &v1alpha1.EdgeRecoveryPolicy{}, &v1alpha1.NodeRecovery{}} {
		if _, err := mgr.GetCache().GetInformer(context.Background(), object, cache.BlockUntilSynced(false)); err != nil {
			return nil, fmt.Errorf("watching %T: %w", object, err)
		}
	}
	return func(req *http.Request) error {
		ctx, cancel := context.WithTimeout(req.Context(), 100*time.Millisecond)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the cache is not in step with the API server: check that it can be reached, that the CRDs are installed and the manager may list them")
		}
		return nil
	}, nil
}
