package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"rekindle.edge/test/edgenode"
)

const (
	settleTimeout = 3 * time.Minute
	settlePoll    = time.Second
)

// A site is a node with its workload and the disks that its runs start from.
type site struct {
	*rig
	workload workload
	node     *edgenode.Node
	// pods of the workload, the youngest at 0.
	pods []*corev1.Pod
	// stale is, by disk, how many sandboxes of earlier boots a run finds.
	stale map[string]float64
	// service is the address of the service that pods need, if they do.
	service string
}

// newSite makes a node, starts its pods and saves its disks.
func newSite(ctx context.Context, r *rig, c config, load workload) (*site, error) {
	s := &site{rig: r, workload: load, stale: map[string]float64{}}
	options := edgenode.Options{Name: load.node, Kubelet: c.kubelet, KubeProxy: load.proxy, Log: r.log}
	if c.installed() {
		options.Agent = &edgenode.Agent{Binary: c.agent}
	}
	var err error
	if s.node, err = edgenode.New(ctx, r.cluster, options); err != nil {
		return nil, err
	}
	if load.disk != nil {
		if err := s.node.EditDisk(ctx, func(root string) error { return load.disk(s, root) }); err != nil {
			return nil, err
		}
	}
	if _, err := s.node.FirstBoot(ctx); err != nil {
		return nil, err
	}
	if load.before != nil {
		if err := load.before(ctx, s); err != nil {
			return nil, err
		}
	}
	count := load.count
	if count == 0 {
		count = c.pods
	}
	r.log("%s: starting %d pods", load.node, count)
	if err := s.createPods(ctx, count); err != nil {
		return nil, err
	}
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	if err := s.cutPower(ctx); err != nil {
		return nil, err
	}
	return s, s.makeDisks(ctx, c)
}

// cutPower takes the power from a node that has nothing unwritten.
func (s *site) cutPower(ctx context.Context) error {
	if _, err := s.node.Exec(ctx, "sync"); err != nil {
		return err
	}
	return s.node.PowerCut(ctx)
}

// settle waits until the API server has every pod Ready again, so that no run
// inherits the outage of the one before it.
func (s *site) settle(ctx context.Context) error {
	return s.wait(ctx, func() (int, error) { return s.apiReady(ctx) })
}

// settleBoot waits until kubelet has every pod Ready in this boot; what the API server
// has may be of the boot before.
func (s *site) settleBoot(ctx context.Context) error {
	return s.wait(ctx, func() (int, error) {
		witness, err := s.node.Current().Witness()
		if err != nil {
			return 0, err
		}
		return len(witness.Ready), nil
	})
}

func (s *site) wait(ctx context.Context, count func() (int, error)) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for {
		ready, err := count()
		if err == nil && ready == len(s.pods) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d pods are Ready: %w", ready, len(s.pods), errors.Join(err, ctx.Err()))
		case <-time.After(settlePoll):
		}
	}
}

// apiReady counts the pods that the API server holds Ready, on a node that it holds Ready.
func (s *site) apiReady(ctx context.Context) (int, error) {
	node, err := s.client.CoreV1().Nodes().Get(ctx, s.workload.node, metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			return 0, errors.New(condition.Message)
		}
	}
	pods, err := s.client.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + s.workload.node})
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

func (s *site) countSandboxes(ctx context.Context) (float64, error) {
	conn, err := s.node.CRI()
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	list, err := runtimeapi.NewRuntimeServiceClient(conn).ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	return float64(len(list.GetItems())), err
}

// podNames are the pods as the logs and the prober name them, the youngest at 0.
func (s *site) podNames() []string {
	names := make([]string, len(s.pods))
	for i, pod := range s.pods {
		names[i] = pod.Namespace + "/" + pod.Name
	}
	return names
}
