package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/edgenode"
)

// restarts counts containers that were started beyond one a pod.
const restarts = "restarts"

// dependentPods are a service's pod, the youngest of all, and eight that end at once when
// the service does not answer.
var dependentPods = workload{
	node: "bench-dependent", count: 9, proxy: true,
	before: createNeededService,
	shape: func(s *site, number int, pod *corev1.Pod) {
		if number == 0 {
			pod.Labels[stageLabel] = "first"
			return
		}
		pod.Spec.Containers[0].Args = append(pod.Spec.Containers[0].Args, "-needs=http://"+s.service+edgenode.ReadyPath)
	},
}

func createNeededService(ctx context.Context, s *site) error {
	service, err := s.client.CoreV1().Services(metav1.NamespaceDefault).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "needed"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{stageLabel: "first", "app": s.workload.podName(0)},
			Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(edgenode.WebPort)}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	s.service = service.Spec.ClusterIP
	return nil
}

// dependent is a node that is cut off, with a stage for the service that all others need.
var dependent = benchCase{
	name:     "dependent",
	workload: &dependentPods,
	agent:    true,
	spec:     firstStage(v1alpha1.WaitForReady),
	limit:    2 * time.Minute,
	offline:  true,
	ready:    all,
	after:    countRestarts,
	figures:  []string{restarts},
}

// dependentPlain is what plain Kubernetes does with the same pods, the API server in reach.
var dependentPlain = benchCase{
	name:     "dependent-plain",
	workload: &dependentPods,
	limit:    3 * time.Minute,
	ready:    all,
	after:    countRestarts,
	figures:  []string{restarts},
}

// countRestarts reads containerd's log: each container that was started has a line.
func countRestarts(_ context.Context, s *site, result *record) error {
	log, err := os.ReadFile(filepath.Join(s.node.Current().Logs, "containerd.log"))
	if err != nil {
		return err
	}
	started := 0
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "StartContainer for") && strings.Contains(line, "returns successfully") {
			started++
		}
	}
	if started < len(s.pods) {
		return fmt.Errorf("containerd's log tells of %d started containers, and %d pods run: its lines have another form", started, len(s.pods))
	}
	result.setExtra(restarts, float64(started-len(s.pods)))
	return nil
}
