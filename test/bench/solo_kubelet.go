package main

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

const (
	leaseNamespace = "kube-node-lease"
	leasePeriod    = 10 * time.Second
)

func soloPodOptions() metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: "spec.nodeName=" + soloNode, ResourceVersion: "0"}
}

// beKubelet does through the local API what kubelet does on an idle node, until ctx ends:
// one watch of each collection, one of each secret and configmap that a pod uses, and its
// lease. What fails is sent.
func beKubelet(ctx context.Context, client kubernetes.Interface) <-chan error {
	failed := make(chan error, 1)
	fail := func(err error) {
		select {
		case failed <- err:
		default:
		}
	}
	type watcher func(context.Context, metav1.ListOptions) (watch.Interface, error)
	follow := func(what string, w watcher, options metav1.ListOptions) {
		for ctx.Err() == nil {
			stream, err := w(ctx, options)
			if err != nil {
				if ctx.Err() == nil {
					fail(fmt.Errorf("watch of %s: %w", what, err))
				}
				return
			}
			for range stream.ResultChan() {
			}
		}
	}
	zero := metav1.ListOptions{ResourceVersion: "0"}
	core := client.CoreV1()
	go follow("pods", core.Pods("").Watch, soloPodOptions())
	go follow("nodes", core.Nodes().Watch, metav1.ListOptions{FieldSelector: "metadata.name=" + soloNode, ResourceVersion: "0"})
	go follow("services", core.Services("").Watch, zero)
	go follow("csidrivers", client.StorageV1().CSIDrivers().Watch, zero)
	go follow("runtimeclasses", client.NodeV1().RuntimeClasses().Watch, zero)
	for i := range soloPods {
		one := metav1.ListOptions{FieldSelector: "metadata.name=" + soloName(i), ResourceVersion: "0"}
		go follow("a secret", core.Secrets(metav1.NamespaceDefault).Watch, one)
		go follow("a configmap", core.ConfigMaps(metav1.NamespaceDefault).Watch, one)
	}
	go func() {
		if err := renewLease(ctx, client); err != nil && ctx.Err() == nil {
			fail(fmt.Errorf("lease: %w", err))
		}
	}()
	return failed
}

func renewLease(ctx context.Context, client kubernetes.Interface) error {
	leases := client.CoordinationV1().Leases(leaseNamespace)
	lease, err := leases.Get(ctx, soloNode, metav1.GetOptions{})
	if err != nil {
		lease, err = leases.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: soloNode, Namespace: leaseNamespace},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To(soloNode), LeaseDurationSeconds: ptr.To(int32(40))},
		}, metav1.CreateOptions{})
	}
	for ; err == nil; lease, err = leases.Update(ctx, lease, metav1.UpdateOptions{}) {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(leasePeriod):
		}
		lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
	}
	return err
}
