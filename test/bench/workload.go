package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/test/edgenode"
)

// A workload is the pods of one node. Each has a node of its own, as they cannot be
// exchanged on one without leaving traces on its disk.
type workload struct {
	// node is the name of the Node; the names of its pods begin with it.
	node string
	// count of the pods; unset: PODS.
	count int
	// critical is how many of the youngest pods extra.critical_last_ready_ms is about.
	critical int
	// proxy says that the node runs kube-proxy: through the local API where the agent is
	// installed.
	proxy bool
	// disk, if set, changes the disk of the new node before it boots.
	disk func(s *site, root string) error
	// before, if set, makes what the pods need.
	before func(ctx context.Context, s *site) error
	// shape, if set, changes a pod before it is made. The youngest has number 0.
	shape func(s *site, number int, pod *corev1.Pod)
}

// plainPods is the workload of a case that names none. Its youngest pod is the most
// important one: nothing but an order that was asked for brings it up first.
var plainPods = workload{
	node: "bench",
	shape: func(_ *site, number int, pod *corev1.Pod) {
		if number == 0 {
			pod.Spec.PriorityClassName = important
		}
	},
}

// important is the priority class of the most important pod.
const important = "bench-important"

// podName is the name of a pod, the youngest having number 0.
func (w workload) podName(number int) string {
	if number == 0 {
		return w.node + "-first"
	}
	return fmt.Sprintf("%s-%03d", w.node, number)
}

// createPods makes the first pod last, so that it is the youngest.
func (s *site) createPods(ctx context.Context, count int) error {
	s.pods = make([]*corev1.Pod, count)
	for number := count - 1; number >= 0; number-- {
		pod := edgenode.WebPod(s.workload.podName(number), s.workload.node)
		// A node that waits for its turn is out of reach: nobody must evict its pods.
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}}
		if s.workload.shape != nil {
			s.workload.shape(s, number, pod)
		}
		created, err := s.client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		s.pods[number] = created
	}
	return nil
}

func (r *rig) createPriorityClass(ctx context.Context) error {
	_, err := r.client.SchedulingV1().PriorityClasses().Create(ctx, &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: important}, Value: 1000,
	}, metav1.CreateOptions{})
	return err
}
