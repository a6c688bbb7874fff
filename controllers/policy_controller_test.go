package controllers

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"rekindle.edge/api/v1alpha1"
)

func TestEventsFollowSuccessfulWritesOnly(t *testing.T) {
	kind := schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "edgerecoverypolicies"}
	cases := map[string]struct {
		refused   error
		wantErr   bool
		wantAgain time.Duration
		wantTold  int
	}{
		"a write that succeeds is told":                            {nil, false, 0, 1},
		"a write that fails is an error, and not told":             {errors.New("no"), true, 0, 0},
		"a version that is not ours any more is tried again later": {apierrors.NewConflict(kind, "p", nil), false, statusDelay, 0},
		"a policy that is gone is nothing to do":                   {apierrors.NewNotFound(kind, "p"), false, 0, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
				if err := add(scheme); err != nil {
					t.Fatal(err)
				}
			}
			c := fake.NewClientBuilder().WithScheme(scheme).
				WithObjects(makePolicy("p").obj(), makeNode("n")).
				WithStatusSubresource(&v1alpha1.EdgeRecoveryPolicy{}).
				WithInterceptorFuncs(interceptor.Funcs{
					SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, object client.Object, opts ...client.SubResourceUpdateOption) error {
						if tc.refused != nil {
							return tc.refused
						}
						return c.SubResource(sub).Update(ctx, object, opts...)
					},
				}).Build()
			recorder := events.NewFakeRecorder(10)
			r := &policyReconciler{Client: c, recorder: recorder, clock: testclock.NewFakePassiveClock(epoch.Time)}
			request := reconcile.Request{NamespacedName: types.NamespacedName{Name: "p"}}

			result, err := r.Reconcile(t.Context(), request)
			if (err != nil) != tc.wantErr || result.RequeueAfter != tc.wantAgain {
				t.Errorf("result = %+v, %v; want an error: %v, again after %v", result, err, tc.wantErr, tc.wantAgain)
			}
			if tc.refused == nil { // and once only
				if _, err := r.Reconcile(t.Context(), request); err != nil {
					t.Error(err)
				}
			}
			if got := len(recorder.Events); got != tc.wantTold {
				t.Errorf("%d events, want %d", got, tc.wantTold)
			}
		})
	}
}
