package agent

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rekindle.edge/api/v1alpha1"
)

// schedule creates a pod on the node.
func (n *node) schedule(name string) {
	GinkgoHelper()
	Expect(admin.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: n.name + "-" + name},
		Spec:       corev1.PodSpec{NodeName: n.name, Containers: []corev1.Container{{Name: "main", Image: "example.com/web:1"}}},
	})).To(Succeed())
}

// container is the id of a pod's container in this boot.
func (n *node) container(name string) string { return fmt.Sprintf("%s-%s-c%d", n.name, name, n.boots) }

// start lets kubelet run a pod's container; setReady reports it.
func (n *node) start(name string) {
	n.runtime.run(n.container(name)+"-sandbox", n.container(name), false)
}

// setReady writes a pod's status as kubelet does, with the node's identity.
func (n *node) setReady(name string, ready bool) {
	GinkgoHelper()
	pod := &corev1.Pod{}
	Expect(n.user.Get(ctx, client.ObjectKey{Namespace: "default", Name: n.name + "-" + name}, pod)).To(Succeed())
	status, reason := corev1.ConditionTrue, ""
	if !ready {
		status, reason = corev1.ConditionFalse, "ContainersNotReady"
	}
	now := metav1.NewTime(n.clock.Wall())
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning,
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: status, Reason: reason, LastTransitionTime: now},
			{Type: corev1.ContainersReady, Status: status, Reason: reason, LastTransitionTime: now},
		},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "main", ContainerID: "containerd://" + n.container(name), Ready: ready,
			Image: "example.com/web:1", ImageID: "example.com/web@sha256:1",
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		}},
	}
	Expect(n.user.Status().Update(ctx, pod)).To(Succeed())
}

// comeUp brings kubelet and these pods up, one after the other, and returns how long after
// kernel start the first and the last were reported Ready.
func (n *node) comeUp(names ...string) (first, last time.Duration) {
	GinkgoHelper()
	n.startKubelet()
	for i, name := range names {
		n.start(name)
		time.Sleep(200 * time.Millisecond)
		n.setReady(name, true)
		last = n.clock.Boot()
		if i == 0 {
			first = last
		}
	}
	return first, last
}

// settle is a first boot of the node, with these pods Ready, that the agent has stored.
func (n *node) settle(names ...string) {
	GinkgoHelper()
	for _, name := range names {
		n.schedule(name)
	}
	n.comeUp(names...)
	Eventually(n.recovery).Should(HaveField("Status.ObservedGeneration", BeEquivalentTo(1)))
	// The pods last seen are written within a second.
	time.Sleep(1500 * time.Millisecond)
}

// recovery is the node's NodeRecovery.
func (n *node) recovery() (*v1alpha1.NodeRecovery, error) {
	recovery := &v1alpha1.NodeRecovery{}
	err := admin.Get(ctx, client.ObjectKey{Name: n.name}, recovery)
	return recovery, err
}

// recoveries are the records in its status.
func (n *node) recoveries() ([]v1alpha1.Recovery, error) {
	recovery, err := n.recovery()
	if err != nil {
		return nil, err
	}
	return recovery.Status.Recoveries, nil
}
