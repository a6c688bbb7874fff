package readiness

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"rekindle.edge/api/v1alpha1"
)

// ran is a complete recovery that began cut off, in milliseconds.
func ran(total int64, stages ...v1alpha1.StageRecovery) v1alpha1.Recovery {
	return v1alpha1.Recovery{
		Result: v1alpha1.RecoveryComplete, ConnectivityAtStart: v1alpha1.ConnectivityOffline, TotalMilliseconds: &total, Stages: stages,
	}
}

func opened(name string, at int64, pods int32, result v1alpha1.StageResult) v1alpha1.StageRecovery {
	return v1alpha1.StageRecovery{Name: name, OpenedMilliseconds: at, Pods: pods, Result: result}
}

func firstAt(r v1alpha1.Recovery, at int64) v1alpha1.Recovery {
	r.Phases = v1alpha1.RecoveryPhases{Kernel: ptr.To(int64(0)), FirstReady: &at}
	return r
}

const (
	wasReady = v1alpha1.StageReady
	timedOut = v1alpha1.StageTimedOut
)

func TestForecast(t *testing.T) {
	online := ran(7)
	online.ConnectivityAtStart = v1alpha1.ConnectivityOnline
	broken := ran(7)
	broken.Result = v1alpha1.RecoveryIncomplete
	rest := func(pods int32) []Stage { return []Stage{{Name: "Rest", Pods: pods}} }
	// Kernel start, 1 s, then 500 ms for a stage and 200 ms for each pod of it.
	ten := ran(3500, opened("Rest", 1000, 10, ""))
	four := ran(2300, opened("Rest", 1000, 4, ""))
	staged := func(wait time.Duration, stuck bool) []Stage {
		return []Stage{{Name: "db", Pods: 2, Waited: true, Wait: wait, Stuck: stuck, Timeout: 30 * time.Second}, {Name: "Rest", Pods: 5}}
	}
	measured := ran(5000, opened("Critical", 1000, 0, wasReady), opened("db", 1000, 2, wasReady), opened("Rest", 2900, 5, ""))
	stuck := ran(33000, opened("Critical", 1000, 0, wasReady), opened("db", 1000, 2, timedOut), opened("Rest", 31000, 5, ""))
	met, missed := v1alpha1.TruthTrue, v1alpha1.TruthFalse
	cases := map[string]struct {
		recoveries []v1alpha1.Recovery
		plan       []Stage
		want       v1alpha1.Forecast
	}{
		"no history":                     {plan: rest(1), want: v1alpha1.Forecast{WithinTarget: v1alpha1.TruthUnknown}},
		"a restart that did not succeed": {recoveries: []v1alpha1.Recovery{broken}, want: v1alpha1.Forecast{WithinTarget: v1alpha1.TruthUnknown}},
		"restarts that were not cut off, where there are no others": {
			recoveries: []v1alpha1.Recovery{online}, want: v1alpha1.Forecast{TotalMilliseconds: 7, BasedOn: 1, WithinTarget: met},
		},
		"one that was cut off counts alone": {
			recoveries: []v1alpha1.Recovery{online, ran(9), broken}, want: v1alpha1.Forecast{TotalMilliseconds: 9, BasedOn: 1, WithinTarget: met},
		},
		"records without a plan: the median, of two the lower": {
			recoveries: []v1alpha1.Recovery{ran(9), ran(1), ran(5), ran(6)}, plan: rest(3), want: v1alpha1.Forecast{TotalMilliseconds: 5, BasedOn: 4, WithinTarget: met},
		},
		"the same plan: the median of its own": {
			recoveries: []v1alpha1.Recovery{ten, four, ran(2700, opened("Rest", 1000, 4, ""))}, plan: rest(4),
			want: v1alpha1.Forecast{TotalMilliseconds: 2300, BasedOn: 2, WithinTarget: met},
		},
		"longer than the target": {
			recoveries: []v1alpha1.Recovery{ran(30001, opened("Rest", 1000, 4, ""))}, plan: rest(4),
			want: v1alpha1.Forecast{TotalMilliseconds: 30001, BasedOn: 1, WithinTarget: missed},
		},
		"another number of pods, by two others": {
			recoveries: []v1alpha1.Recovery{ten, four}, plan: rest(20), want: v1alpha1.Forecast{TotalMilliseconds: 5500, BasedOn: 2, WithinTarget: met},
		},
		"another number of pods, by one restart and its first pod": {
			recoveries: []v1alpha1.Recovery{firstAt(ten, 1700)}, plan: rest(20), want: v1alpha1.Forecast{TotalMilliseconds: 5500, BasedOn: 1, WithinTarget: met},
		},
		"another number of pods, and no more is known": {
			recoveries: []v1alpha1.Recovery{ten}, plan: rest(20), want: v1alpha1.Forecast{TotalMilliseconds: 6000, BasedOn: 1, WithinTarget: met},
		},
		"stages that were never measured: 0.9 s and a second for the first, 1.5 s": {
			recoveries: []v1alpha1.Recovery{ten, four}, plan: staged(0, false),
			want: v1alpha1.Forecast{TotalMilliseconds: 4400, BasedOn: 2, SlowestStage: "Rest", WithinTarget: met},
		},
		"and a probe's wait": {
			recoveries: []v1alpha1.Recovery{ten, four}, plan: staged(20*time.Second, false),
			want: v1alpha1.Forecast{TotalMilliseconds: 24400, BasedOn: 2, SlowestStage: "db", WithinTarget: met},
		},
		"and a pod that is not Ready": {
			recoveries: []v1alpha1.Recovery{ten, four}, plan: staged(0, true),
			want: v1alpha1.Forecast{TotalMilliseconds: 32500, BasedOn: 2, SlowestStage: "db", WithinTarget: missed},
		},
		"stages that were measured": {
			recoveries: []v1alpha1.Recovery{measured, ten}, plan: staged(0, false),
			want: v1alpha1.Forecast{TotalMilliseconds: 5000, BasedOn: 1, SlowestStage: "Rest", WithinTarget: met},
		},
		"a stage that timed out then, and would again": {
			recoveries: []v1alpha1.Recovery{stuck, ten}, plan: staged(0, true),
			want: v1alpha1.Forecast{TotalMilliseconds: 33000, BasedOn: 1, SlowestStage: "db", WithinTarget: missed},
		},
		"a stage that timed out then, and whose pods are well now": {
			recoveries: []v1alpha1.Recovery{stuck, ten, four}, plan: staged(0, false),
			want: v1alpha1.Forecast{TotalMilliseconds: 4400, BasedOn: 3, SlowestStage: "Rest", WithinTarget: met},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Forecast(tc.recoveries, tc.plan, 30)
			// Of a fit, to a tenth of a second.
			if math.Abs(float64(got.TotalMilliseconds-tc.want.TotalMilliseconds)) <= 100 {
				got.TotalMilliseconds = tc.want.TotalMilliseconds
			}
			if diff := cmp.Diff(&tc.want, got); diff != "" {
				t.Errorf("forecast (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlan(t *testing.T) {
	staged := func(stage int, name string, change func(*corev1.Pod)) Pod {
		p := pod(func(p *Pod) {
			p.Spec.Containers = []corev1.Container{{}}
			if change != nil {
				change(p.Pod)
			}
		}).Pods[0]
		p.Stage, p.StageName = stage, name
		return p
	}
	readiness := func(probe corev1.Probe) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Containers[0].ReadinessProbe = &probe }
	}
	notReady := func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	}
	exec := corev1.Probe{PeriodSeconds: 4}
	exec.Exec = &corev1.ExecAction{}
	policy := func(stages ...v1alpha1.Stage) *v1alpha1.NodeRecoverySpec {
		return &v1alpha1.NodeRecoverySpec{StartupOrdering: v1alpha1.StartupOrdering{Stages: stages}}
	}
	asWritten := &v1alpha1.NodeRecoverySpec{Offline: v1alpha1.Offline{ReadinessProbes: v1alpha1.ReadinessProbesAsWritten}}
	const minute = time.Minute
	cases := map[string]struct {
		pods   []Pod
		policy *v1alpha1.NodeRecoverySpec
		want   []Stage
	}{
		"no pods":   {},
		"no stages": {pods: []Pod{staged(0, "", nil), staged(0, "", nil)}, want: []Stage{{Name: "Rest", Pods: 2, Timeout: minute}}},
		"a stage that the next waits for": {
			pods: []Pod{staged(3, "Rest", nil), staged(1, "db", nil)}, policy: policy(v1alpha1.Stage{Name: "db", TimeoutSeconds: 10}),
			want: []Stage{{Name: "db", Pods: 1, Waited: true, Timeout: 10 * time.Second}, {Name: "Rest", Pods: 1, Timeout: minute}},
		},
		"a stage that need only have started": {
			pods: []Pod{staged(3, "Rest", nil), staged(1, "db", notReady)}, policy: policy(v1alpha1.Stage{Name: "db", WaitFor: v1alpha1.WaitForStarted}),
			want: []Stage{{Name: "db", Pods: 1, Timeout: minute}, {Name: "Rest", Pods: 1, Timeout: minute}},
		},
		"a pod that is not Ready keeps the next stage waiting": {
			pods: []Pod{staged(3, "Rest", nil), staged(1, "db", notReady)}, policy: policy(v1alpha1.Stage{Name: "db"}),
			want: []Stage{{Name: "db", Pods: 1, Waited: true, Stuck: true, Timeout: minute}, {Name: "Rest", Pods: 1, Timeout: minute}},
		},
		"and in the last stage nobody": {
			pods: []Pod{staged(3, "Rest", notReady)}, policy: policy(v1alpha1.Stage{Name: "db"}), want: []Stage{{Name: "Rest", Pods: 1, Timeout: minute}},
		},
		"an initial delay, and a period that is shortened": {
			pods: []Pod{staged(0, "", readiness(corev1.Probe{InitialDelaySeconds: 7, PeriodSeconds: 10}))},
			want: []Stage{{Name: "Rest", Pods: 1, Wait: 7 * time.Second, Timeout: minute}},
		},
		"a period as written: half of it for one pod": {
			pods: []Pod{staged(0, "", readiness(corev1.Probe{}))}, policy: asWritten, want: []Stage{{Name: "Rest", Pods: 1, Wait: 5 * time.Second, Timeout: minute}},
		},
		"a probe that runs a program, of three pods": {
			pods: []Pod{staged(0, "", readiness(exec)), staged(0, "", readiness(exec)), staged(0, "", readiness(exec))},
			want: []Stage{{Name: "Rest", Pods: 3, Wait: 3 * time.Second, Timeout: minute}},
		},
		"a startup probe": {
			pods: []Pod{staged(0, "", func(p *corev1.Pod) {
				p.Spec.Containers[0].StartupProbe = &corev1.Probe{InitialDelaySeconds: 3, PeriodSeconds: 2}
			})},
			want: []Stage{{Name: "Rest", Pods: 1, Wait: 4 * time.Second, Timeout: minute}},
		},
		"a sidecar's probe": {
			pods: []Pod{staged(0, "", func(p *corev1.Pod) {
				p.Spec.InitContainers = []corev1.Container{{
					RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways), ReadinessProbe: &corev1.Probe{InitialDelaySeconds: 2},
				}}
			})},
			want: []Stage{{Name: "Rest", Pods: 1, Wait: 2 * time.Second, Timeout: minute}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Plan(tc.pods, tc.policy)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			record := ran(1)
			for _, s := range got {
				record.Stages = append(record.Stages, v1alpha1.StageRecovery{Name: s.Name})
				if s.Stuck {
					record.Stages[len(record.Stages)-1].Result = timedOut
				}
			}
			NotePlan(&record, got)
			if len(got) > 0 && !measuredOn(record, got) {
				t.Errorf("a record of this plan is not known as one: %+v", record.Stages)
			}
		})
	}
}
