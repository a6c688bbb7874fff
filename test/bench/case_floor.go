package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// floor is what the container runtime alone needs: a bare CRI client starts the
// same pods all at once, without kubelet, as soon as containerd answers.
var floor = benchCase{
	name:         "floor",
	prepare:      func(ctx context.Context, s *site) error { return s.node.DisableUnit(ctx, "kubelet.service") },
	start:        startPods,
	readyByProbe: true,
	limit:        time.Minute,
	ready:        all,
}

// runtimePoll is how often containerd is asked whether it is there.
const runtimePoll = 5 * time.Millisecond

func startPods(ctx context.Context, s *site) (time.Time, error) {
	conn, err := s.node.CRI()
	if err != nil {
		return time.Time{}, err
	}
	defer conn.Close()
	client := runtimeapi.NewRuntimeServiceClient(conn)
	var zero time.Time
	for {
		// A connection that failed would be tried again after a back-off only.
		conn.ResetConnectBackoff()
		zero = time.Now()
		status, err := client.Status(ctx, &runtimeapi.StatusRequest{})
		if err == nil && runtimeReady(status.GetStatus()) {
			break
		}
		select {
		case <-ctx.Done():
			return zero, fmt.Errorf("containerd is not ready: %w", errors.Join(err, ctx.Err()))
		case <-time.After(runtimePoll):
		}
	}
	attempts, err := nextAttempts(ctx, client)
	if err != nil {
		return zero, err
	}
	failures := make(chan error)
	for _, pod := range s.pods {
		go func() { failures <- startPod(ctx, client, pod, attempts[string(pod.UID)]) }()
	}
	var errs []error
	for range s.pods {
		errs = append(errs, <-failures)
	}
	return zero, errors.Join(errs...)
}

func runtimeReady(status *runtimeapi.RuntimeStatus) bool {
	for _, condition := range status.GetConditions() {
		if !condition.GetStatus() && (condition.GetType() == runtimeapi.RuntimeReady || condition.GetType() == runtimeapi.NetworkReady) {
			return false
		}
	}
	return true
}

// nextAttempts numbers the sandboxes on, as kubelet does: their names are taken by
// those of earlier boots.
func nextAttempts(ctx context.Context, client runtimeapi.RuntimeServiceClient) (map[string]uint32, error) {
	list, err := client.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return nil, err
	}
	attempts := map[string]uint32{}
	for _, sandbox := range list.GetItems() {
		uid := sandbox.GetMetadata().GetUid()
		attempts[uid] = max(attempts[uid], sandbox.GetMetadata().GetAttempt()+1)
	}
	return attempts, nil
}

func startPod(ctx context.Context, client runtimeapi.RuntimeServiceClient, pod *corev1.Pod, attempt uint32) error {
	sandbox, container := podConfigs(pod, attempt)
	created, err := client.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: sandbox})
	if err != nil {
		return fmt.Errorf("pod %s: sandbox: %w", pod.Name, err)
	}
	id, err := client.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{
		PodSandboxId: created.GetPodSandboxId(), Config: container, SandboxConfig: sandbox,
	})
	if err != nil {
		return fmt.Errorf("pod %s: creating its container: %w", pod.Name, err)
	}
	if _, err := client.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: id.GetContainerId()}); err != nil {
		return fmt.Errorf("pod %s: starting its container: %w", pod.Name, err)
	}
	return nil
}

// podConfigs says of a pod to the runtime what kubelet would, as far as it costs time.
func podConfigs(pod *corev1.Pod, attempt uint32) (*runtimeapi.PodSandboxConfig, *runtimeapi.ContainerConfig) {
	uid := string(pod.UID)
	container := pod.Spec.Containers[0]
	sandbox := &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: pod.Name, Namespace: pod.Namespace, Uid: uid, Attempt: attempt},
		Hostname:     pod.Name,
		LogDirectory: fmt.Sprintf("/var/log/pods/%s_%s_%s", pod.Namespace, pod.Name, uid),
		DnsConfig:    &runtimeapi.DNSConfig{},
		Linux:        &runtimeapi.LinuxPodSandboxConfig{CgroupParent: "/kubepods/besteffort/pod" + uid},
	}
	volume := fmt.Sprintf("/var/lib/kubelet/pods/%s/volumes/kubernetes.io~empty-dir/scratch", uid)
	return sandbox, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: container.Name, Attempt: attempt},
		Image:    &runtimeapi.ImageSpec{Image: container.Image},
		Args:     container.Args,
		LogPath:  fmt.Sprintf("%s/%d.log", container.Name, attempt),
		Mounts:   []*runtimeapi.Mount{{HostPath: volume, ContainerPath: "/scratch"}},
		Linux:    &runtimeapi.LinuxContainerConfig{},
	}
}
