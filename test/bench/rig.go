package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"rekindle.edge/test/cluster"
	"rekindle.edge/test/edgenode"
)

const (
	nodeName = "bench"
	// firstPod is the pod whose time is kubelet_to_first_ready_ms. It is the youngest:
	// nothing but an order that someone asked for brings it up first.
	firstPod = "bench-first"
	// savedDisk is the disk that every run starts from.
	savedDisk     = "prepared"
	settleTimeout = 3 * time.Minute
	settlePoll    = time.Second
)

// A rig is the cluster and the node that all runs share.
type rig struct {
	cluster *cluster.Cluster
	node    *edgenode.Node
	client  kubernetes.Interface
	wan     edgenode.WANMode
	// pods are the service pods, firstPod at 0.
	pods []*corev1.Pod
	// stale is how many sandboxes of an earlier boot each run finds.
	stale int64
	log   func(string, ...any)
}

// newRig starts everything and saves the disk of a node that lost its power while its pods served.
func newRig(ctx context.Context, c config, log func(string, ...any)) (_ *rig, err error) {
	r := &rig{wan: c.wan, log: log}
	if r.cluster, err = cluster.Start(ctx, cluster.Options{Nodes: true, Log: log}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	if r.client, err = kubernetes.NewForConfig(r.cluster.Admin()); err != nil {
		return nil, err
	}
	if r.node, err = edgenode.New(ctx, r.cluster, nodeOptions(c, log)); err != nil {
		return nil, err
	}
	if _, err := r.node.FirstBoot(ctx); err != nil {
		return nil, err
	}
	log("starting %d pods", c.pods)
	if err := r.createPods(ctx, c.pods); err != nil {
		return nil, err
	}
	if err := r.settle(ctx); err != nil {
		return nil, err
	}
	if r.stale, err = r.countSandboxes(ctx); err != nil {
		return nil, err
	}
	if _, err := r.node.Exec(ctx, "sync"); err != nil {
		return nil, err
	}
	if err := r.node.PowerCut(ctx); err != nil {
		return nil, err
	}
	return r, r.makeDisks(ctx, c.installed())
}

func (r *rig) close() error { return r.cluster.Stop() }

// createPods makes the named first pod last, so that it is the youngest.
func (r *rig) createPods(ctx context.Context, count int) error {
	r.pods = make([]*corev1.Pod, count)
	for i := count - 1; i >= 0; i-- {
		name := firstPod
		if i > 0 {
			name = fmt.Sprintf("bench-%03d", i)
		}
		pod, err := r.client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, edgenode.WebPod(name, nodeName), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		r.pods[i] = pod
	}
	return nil
}

// settle waits until the API server has every pod Ready again, so that no run
// inherits the outage of the one before it.
func (r *rig) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for {
		ready, err := r.apiReady(ctx)
		if err == nil && ready == len(r.pods) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d pods are Ready: %w", ready, len(r.pods), errors.Join(err, ctx.Err()))
		case <-time.After(settlePoll):
		}
	}
}

// apiReady counts the pods that the API server holds Ready, on a node that it holds Ready.
func (r *rig) apiReady(ctx context.Context) (int, error) {
	node, err := r.client.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			return 0, errors.New(condition.Message)
		}
	}
	pods, err := r.client.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	ready := 0
	for _, pod := range pods.Items {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				ready++
			}
		}
	}
	return ready, nil
}

func (r *rig) countSandboxes(ctx context.Context) (int64, error) {
	conn, err := r.node.CRI()
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	list, err := runtimeapi.NewRuntimeServiceClient(conn).ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	return int64(len(list.GetItems())), err
}

// podNames are the pods as the logs and the prober name them, firstPod at 0.
func (r *rig) podNames() []string {
	names := make([]string, len(r.pods))
	for i, pod := range r.pods {
		names[i] = pod.Namespace + "/" + pod.Name
	}
	return names
}
