package timeline

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestViewPod(t *testing.T) {
	since := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	pod := func(change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid"},
			Status: corev1.PodStatus{
				Phase: corev1.PodRunning,
				Conditions: []corev1.PodCondition{
					{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(since)},
					{Type: corev1.ContainersReady, Status: corev1.ConditionTrue},
				},
				ContainerStatuses: []corev1.ContainerStatus{{ContainerID: "containerd://c1", Ready: true}},
			},
		}
		change(p)
		return p
	}
	notReady := func(reason string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions[0] = corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: reason}
		}
	}
	base := Pod{Key: "uid", Name: "shop/web", Restarts: true, Containers: []string{"c1"}, Reason: "Running"}
	with := func(change func(*Pod)) Pod {
		p := base
		change(&p)
		return p
	}
	cases := map[string]struct {
		pod  *corev1.Pod
		want Pod
	}{
		"a Ready pod": {
			pod:  pod(func(*corev1.Pod) {}),
			want: with(func(p *Pod) { p.Ready, p.Alive, p.ReadySince = true, true, since }),
		},
		"the node controller's verdict is not kubelet's": {
			pod:  pod(notReady("")),
			want: with(func(p *Pod) { p.Alive = true }),
		},
		"a readiness gate is not the node controller": {
			pod:  pod(notReady(reasonReadinessGates)),
			want: with(func(p *Pod) { p.Reason = reasonReadinessGates }),
		},
		"the waiting reason of a container tells most": {
			pod: pod(func(p *corev1.Pod) {
				notReady("ContainersNotReady")(p)
				p.Status.Conditions[1].Status = corev1.ConditionFalse
				p.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
			}),
			want: with(func(p *Pod) { p.Reason = "CrashLoopBackOff" }),
		},
		"a container that is being created tells nothing": {
			pod: pod(func(p *corev1.Pod) {
				notReady("ContainersNotReady")(p)
				p.Status.Conditions[1].Status = corev1.ConditionFalse
				p.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
			}),
			want: with(func(p *Pod) { p.Reason = "ContainersNotReady" }),
		},
		"the mirror of a static pod is known by its name": {
			pod:  pod(func(p *corev1.Pod) { p.Annotations = map[string]string{mirrorAnnotation: "hash"} }),
			want: with(func(p *Pod) { p.Key, p.Ready, p.Alive, p.ReadySince = "static/shop/web", true, true, since }),
		},
		"a static pod as kubelet has it is known by its name": {
			pod:  pod(func(p *corev1.Pod) { p.Annotations = map[string]string{sourceAnnotation: "file"} }),
			want: with(func(p *Pod) { p.Key, p.Ready, p.Alive, p.ReadySince = "static/shop/web", true, true, since }),
		},
		"a pod of the API server as kubelet has it": {
			pod:  pod(func(p *corev1.Pod) { p.Annotations = map[string]string{sourceAnnotation: sourceAPI} }),
			want: with(func(p *Pod) { p.Ready, p.Alive, p.ReadySince = true, true, since }),
		},
		"a job's pod that is done": {
			pod: pod(func(p *corev1.Pod) {
				notReady("PodCompleted")(p)
				p.Status.Phase, p.Spec.RestartPolicy = corev1.PodSucceeded, corev1.RestartPolicyNever
				p.Status.Conditions[1].Status = corev1.ConditionFalse
			}),
			want: with(func(p *Pod) { p.Finished, p.Restarts, p.Reason = true, false, "PodCompleted" }),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ViewPod(tc.pod)); diff != "" {
				t.Errorf("view (-want +got):\n%s", diff)
			}
		})
	}
}
