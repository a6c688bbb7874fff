package readiness

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"rekindle.edge/api/v1alpha1"
)

// settleTime is how long a stage's pods are Ready before the next stage is opened.
const settleTime = time.Second

// Defaults of the API and of the start-up order, where a stored object lacks them.
const (
	defaultPeriod       = 10
	defaultStageTimeout = 60 * time.Second
	// restStage is the one of pods that no stage selects, and of all pods without stages.
	restStage = "Rest"
)

// Stage is one step of the start that a node's policy and pods make: what a recovery takes
// depends on it.
type Stage struct {
	Name string
	Pods int32
	// Wait is how long its pods take to be called Ready although they run, by their probes.
	Wait time.Duration
	// Waited says that the next stage waits until the pods are Ready.
	Waited bool
	// Stuck says that a pod of it is not Ready and would keep the next stage waiting: for
	// Timeout.
	Stuck   bool
	Timeout time.Duration
}

// Plan is the start that is to be expected of these pods, without stages that have none.
func Plan(pods []Pod, policy *v1alpha1.NodeRecoverySpec) []Stage {
	asWritten := policy != nil && policy.Offline.ReadinessProbes == v1alpha1.ReadinessProbesAsWritten
	groups := map[int][]Pod{}
	var places []int
	for _, pod := range pods {
		if pod.Status.Phase == "" && len(pod.Spec.Containers) == 0 {
			continue // it does not decode
		}
		if groups[pod.Stage] == nil {
			places = append(places, pod.Stage)
		}
		groups[pod.Stage] = append(groups[pod.Stage], pod)
	}
	slices.Sort(places)
	var plan []Stage
	for i, place := range places {
		group := groups[place]
		s := Stage{Name: cmp.Or(group[0].StageName, restStage), Pods: int32(len(group)), Wait: waitOf(group, asWritten), Timeout: defaultStageTimeout}
		s.Waited = i < len(places)-1
		if policy != nil {
			for _, stage := range policy.StartupOrdering.Stages {
				if stage.Name == s.Name {
					s.Waited = s.Waited && stage.WaitFor != v1alpha1.WaitForStarted
					s.Timeout = cmp.Or(time.Duration(stage.TimeoutSeconds)*time.Second, defaultStageTimeout)
					// Critical pods that are not Ready hold nobody up.
					s.Stuck = s.Waited && slices.ContainsFunc(group, func(p Pod) bool { return !ready(p.Pod) })
				}
			}
		}
		plan = append(plan, s)
	}
	return plan
}

// ready says whether a pod is Ready, or has nothing that would make it so.
func ready(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return true
}

// waitOf is the longest initial delay of the pods' probes, and of the longest period the part
// that the slowest of several probes with a random start takes on average. Periods of probes
// that the local API shortens count for nothing.
func waitOf(pods []Pod, asWritten bool) time.Duration {
	var delay, period, slow int32
	for _, pod := range pods {
		most := int32(0)
		for _, c := range slices.Concat(pod.Spec.Containers, sidecars(pod.Pod)) {
			for i, probe := range []*corev1.Probe{c.ReadinessProbe, c.StartupProbe} {
				if probe == nil {
					continue
				}
				delay = max(delay, probe.InitialDelaySeconds)
				if i == 1 || asWritten || probe.Exec != nil {
					most = max(most, cmp.Or(probe.PeriodSeconds, defaultPeriod))
				}
			}
		}
		if most > 1 {
			slow++
			period = max(period, most)
		}
	}
	wait := time.Duration(delay) * time.Second
	if slow > 0 {
		wait += time.Duration(period) * time.Second * time.Duration(slow) / time.Duration(slow+1)
	}
	return wait.Truncate(time.Millisecond)
}

// sidecars are init containers that run on.
func sidecars(pod *corev1.Pod) []corev1.Container {
	return slices.DeleteFunc(slices.Clone(pod.Spec.InitContainers), func(c corev1.Container) bool {
		return c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways
	})
}

// measuredWait is how much of the wait is in what the stage takes: none of it where the next
// stage waits only until the pods have started.
func (s Stage) measuredWait(last bool) int64 {
	if !s.Waited && !last {
		return 0
	}
	return s.Wait.Milliseconds()
}

// NotePlan writes down in a record what its stages had to start.
func NotePlan(record *v1alpha1.Recovery, plan []Stage) {
	stages := slices.Clone(record.Stages)
	for i := range stages {
		at := slices.IndexFunc(plan, func(s Stage) bool { return s.Name == stages[i].Name })
		if at >= 0 {
			stages[i].Pods, stages[i].ProbeWaitMilliseconds = plan[at].Pods, plan[at].measuredWait(at == len(plan)-1)
		}
	}
	record.Stages = stages
}
