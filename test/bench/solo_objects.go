package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"rekindle.edge/test/edgenode"
)

// What a full node's API server has for it.
const (
	soloPods     = 110
	soloServices = 1000
	soloSlices   = 1000
	// writers make the objects side by side.
	writers = 8
)

// fillCluster makes the Node and its objects: each pod has a secret and a configmap.
func (s *solo) fillCluster(ctx context.Context) error {
	s.log("%s: making %d pods, %d services, %d endpointslices", soloNode, soloPods, soloServices, soloSlices)
	config := rest.CopyConfig(s.cluster.Admin())
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: soloNode}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}
	if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return err
	}
	return errors.Join(
		inParallel(soloPods, func(i int) error { return createSoloPod(ctx, client, i) }),
		inParallel(soloServices, func(i int) error { return createService(ctx, client, i) }),
		inParallel(soloSlices, func(i int) error { return createSlice(ctx, client, i) }),
	)
}

func inParallel(count int, do func(int) error) error {
	numbers := make(chan int)
	errs := make([]error, writers)
	var running sync.WaitGroup
	for w := range writers {
		running.Go(func() {
			for i := range numbers {
				errs[w] = errors.Join(errs[w], do(i))
			}
		})
	}
	for i := range count {
		numbers <- i
	}
	close(numbers)
	running.Wait()
	return errors.Join(errs...)
}

func soloName(i int) string { return fmt.Sprintf("%s-%04d", soloNode, i) }

func createSoloPod(ctx context.Context, client kubernetes.Interface, i int) error {
	name := metav1.ObjectMeta{Name: soloName(i), Namespace: metav1.NamespaceDefault}
	data := map[string]string{"settings": fmt.Sprintf("%01000d", i)}
	if _, err := client.CoreV1().ConfigMaps(name.Namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: name, Data: data}, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := client.CoreV1().Secrets(name.Namespace).Create(ctx, &corev1.Secret{ObjectMeta: name, StringData: data}, metav1.CreateOptions{}); err != nil {
		return err
	}
	pod := edgenode.WebPod(name.Name, soloNode)
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}}
	pod.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name.Name}}},
		{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name.Name}}},
	}
	created, err := client.CoreV1().Pods(name.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	now := metav1.Now()
	created.Status.Phase, created.Status.StartTime, created.Status.PodIP = corev1.PodRunning, &now, fmt.Sprintf("10.1.0.%d", i+1)
	for _, condition := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		created.Status.Conditions = append(created.Status.Conditions, corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	created.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: created.Spec.Containers[0].Name, Ready: true, Started: ptr.To(true), Image: created.Spec.Containers[0].Image,
		ImageID: created.Spec.Containers[0].Image, ContainerID: fmt.Sprintf("containerd://%064d", i),
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
	}}
	_, err = client.CoreV1().Pods(name.Namespace).UpdateStatus(ctx, created, metav1.UpdateOptions{})
	return err
}

// createService makes one without an address: the range of the test cluster is too small.
func createService(ctx context.Context, client kubernetes.Interface, i int) error {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: soloName(i)},
		Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	}
	_, err := client.CoreV1().Services(metav1.NamespaceDefault).Create(ctx, service, metav1.CreateOptions{})
	return err
}

// createSlice makes a slice that no controller takes for its own.
func createSlice(ctx context.Context, client kubernetes.Interface, i int) error {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: soloName(i), Labels: map[string]string{discoveryv1.LabelServiceName: soloName(i), discoveryv1.LabelManagedBy: "bench"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To(int32(edgenode.WebPort))}},
	}
	for copy := range 3 {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.%d.%d.%d", 2+copy, i/250, 1+i%250)}, NodeName: ptr.To(fmt.Sprintf("other-%d", copy)),
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true), Serving: ptr.To(true)},
		})
	}
	_, err := client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Create(ctx, slice, metav1.CreateOptions{})
	return err
}

// mirrorAll starts the agent with the link up and returns when it holds everything on the
// disk.
func (s *solo) mirrorAll(ctx context.Context) error {
	if _, err := s.start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for {
		held, err := s.holds(ctx)
		if err == nil && held {
			break
		}
		select {
		case <-s.process.Done():
			return s.process.Err()
		case <-ctx.Done():
			return fmt.Errorf("the agent does not hold everything: %w", errors.Join(err, ctx.Err()))
		case <-time.After(settlePoll):
		}
	}
	time.Sleep(mirrorTime)
	return nil
}

// holds says whether the local API serves all pods, services and endpointslices.
func (s *solo) holds(ctx context.Context) (bool, error) {
	config, err := s.kubelet(true)
	if err != nil {
		return false, err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return false, err
	}
	defer client.CloseIdleConnections()
	for path, want := range map[string]int{
		podList:                              soloPods,
		"/api/v1/services?resourceVersion=0": soloServices,
		"/apis/discovery.k8s.io/v1/endpointslices?resourceVersion=0": soloSlices,
	} {
		count, status, err := countItems(ctx, client, config.Host+path)
		if err != nil || status != http.StatusOK || count < want {
			return false, fmt.Errorf("GET %s: status %d, %d objects: %w", path, status, count, err)
		}
	}
	return true, nil
}
