package readiness

import (
	"cmp"
	"slices"
	"time"

	"rekindle.edge/api/v1alpha1"
)

// The forecast of the next restart that is cut off is made of this node's own complete
// recoveries: those that began cut off, else the others; nobody else's says anything of it.
//
//   - Recoveries of the same plan (stages with the same numbers of pods and the same waits for
//     probes): their median.
//   - None of the same plan: the start is taken from all, up to when the first stage was
//     opened. A stage of n pods then takes a + c·n + its probes' wait, and a second more if
//     the next one waits for it. a and c come from all stages that were measured, and from
//     when the first pod was Ready: the median of the slopes between any two of them, and the
//     median of what is left (the estimator of Theil and Sen, which outliers do not move).
//   - A stage with a pod that is not Ready takes its timeout.
//   - Records without their plan: the median of all.

// Forecast makes it; with TotalMilliseconds unset there is no history yet. Target in seconds.
func Forecast(recoveries []v1alpha1.Recovery, plan []Stage, target int32) *v1alpha1.Forecast {
	history := usable(recoveries)
	if len(history) == 0 {
		return &v1alpha1.Forecast{WithinTarget: v1alpha1.TruthUnknown}
	}
	f := &v1alpha1.Forecast{BasedOn: int32(len(history)), WithinTarget: v1alpha1.TruthFalse}
	same := slices.DeleteFunc(slices.Clone(history), func(r v1alpha1.Recovery) bool { return !measuredOn(r, plan) })
	planned := slices.ContainsFunc(history, hasPlan)
	switch {
	case len(same) > 0:
		f.BasedOn = int32(len(same))
		f.TotalMilliseconds = median(totals(same))
		f.SlowestStage = slowest(plan, func(i int) int64 {
			var took []int64
			for _, r := range same {
				took = append(took, took64(stagesOf(r)[i]))
			}
			return median(took)
		})
	case planned && len(plan) > 0:
		total, stages := scaled(history, plan)
		f.TotalMilliseconds = total.Milliseconds()
		f.SlowestStage = slowest(plan, func(i int) int64 { return stages[i].Milliseconds() })
	default:
		f.TotalMilliseconds = median(totals(history))
	}
	if f.TotalMilliseconds <= int64(target)*1000 {
		f.WithinTarget = v1alpha1.TruthTrue
	}
	return f
}

// usable are the records to learn from.
func usable(recoveries []v1alpha1.Recovery) []v1alpha1.Recovery {
	var offline, online []v1alpha1.Recovery
	for _, r := range recoveries {
		switch {
		case r.Result != v1alpha1.RecoveryComplete || r.TotalMilliseconds == nil:
		case r.ConnectivityAtStart == v1alpha1.ConnectivityOffline:
			offline = append(offline, r)
		default:
			online = append(online, r)
		}
	}
	if len(offline) > 0 {
		return offline
	}
	return online
}

// measured is a stage of a record.
type measured struct {
	v1alpha1.StageRecovery
	took time.Duration
	// waited: the next stage waited for it. Broken off: not until its pods were Ready.
	waited, brokenOff bool
}

func took64(m measured) int64 { return m.took.Milliseconds() }

// stagesOf are the stages of a record that had pods.
func stagesOf(r v1alpha1.Recovery) []measured {
	var all []measured
	for i, stage := range r.Stages {
		end := *r.TotalMilliseconds
		if i+1 < len(r.Stages) {
			end = min(end, r.Stages[i+1].OpenedMilliseconds)
		}
		m := measured{StageRecovery: stage, took: time.Duration(max(0, end-stage.OpenedMilliseconds)) * time.Millisecond}
		m.waited = i+1 < len(r.Stages)
		m.brokenOff = stage.Result == v1alpha1.StageTimedOut || stage.Result == v1alpha1.StageEarly
		if stage.Pods > 0 {
			all = append(all, m)
		}
	}
	return all
}

func hasPlan(r v1alpha1.Recovery) bool { return len(stagesOf(r)) > 0 }

// measuredOn says whether a record is of this plan.
func measuredOn(r v1alpha1.Recovery, plan []Stage) bool {
	stages := stagesOf(r)
	if len(stages) == 0 || len(stages) != len(plan) {
		return false
	}
	for i, s := range plan {
		m := stages[i]
		if m.Name != s.Name || m.Pods != s.Pods || m.ProbeWaitMilliseconds != s.measuredWait(i == len(plan)-1) || m.brokenOff != s.Stuck {
			return false
		}
	}
	return true
}

// sample is a number of pods and how long they took, without waits.
type sample struct{ pods, seconds float64 }

func samplesOf(r v1alpha1.Recovery) []sample {
	var samples []sample
	for i, m := range stagesOf(r) {
		if m.brokenOff {
			continue
		}
		wait := time.Duration(m.ProbeWaitMilliseconds) * time.Millisecond
		if i == 0 && wait == 0 {
			// A stage tells of its first pod too.
			if first := firstReady(r.Phases) - m.OpenedMilliseconds; first > 0 && m.Pods > 1 {
				samples = append(samples, sample{1, float64(first) / 1000})
			}
		}
		if m.waited {
			wait += settleTime
		}
		samples = append(samples, sample{float64(m.Pods), max(0, m.took-wait).Seconds()})
	}
	return samples
}

// firstReady is when the first pod was Ready, in milliseconds since kernel start; 0: unknown.
func firstReady(p v1alpha1.RecoveryPhases) int64 {
	if p.FirstReady == nil {
		return 0
	}
	var sum int64
	for _, phase := range []*int64{p.Kernel, p.Userspace, p.KubeletStart, p.NodeList, p.PodList, p.FirstSandbox, p.FirstReady} {
		if phase != nil {
			sum += *phase
		}
	}
	return sum
}

// fit gives a and c of seconds = a + c·pods.
func fit(samples []sample) (a, c float64) {
	var slopes, rests []float64
	for i, s := range samples {
		for _, t := range samples[i+1:] {
			if s.pods != t.pods {
				slopes = append(slopes, (s.seconds-t.seconds)/(s.pods-t.pods))
			}
		}
	}
	if len(slopes) == 0 {
		for _, s := range samples {
			slopes = append(slopes, s.seconds/s.pods)
		}
		return 0, max(0, median(slopes))
	}
	c = max(0, median(slopes))
	for _, s := range samples {
		rests = append(rests, s.seconds-c*s.pods)
	}
	return max(0, median(rests)), c
}

// scaled puts a plan together that was not measured, and how long each of its stages takes.
func scaled(history []v1alpha1.Recovery, plan []Stage) (time.Duration, []time.Duration) {
	var samples []sample
	var starts []int64
	for _, r := range history {
		if hasPlan(r) {
			samples = append(samples, samplesOf(r)...)
			starts = append(starts, r.Stages[0].OpenedMilliseconds)
		}
	}
	var a, c float64
	if len(samples) > 0 {
		a, c = fit(samples)
	}
	at := time.Duration(median(starts)) * time.Millisecond
	total := at
	stages := make([]time.Duration, len(plan))
	for i, s := range plan {
		work := time.Duration((a + c*float64(s.Pods)) * float64(time.Second))
		stages[i] = work + s.Wait
		if s.Stuck {
			stages[i] = s.Timeout
		}
		total = max(total, at+stages[i])
		switch {
		case s.Stuck:
			at += s.Timeout
		case s.Waited:
			at += stages[i] + settleTime
		default: // the next one waits until they have started
			at += work
		}
	}
	return total, stages
}

// slowest is the stage that takes longest; empty: there is one alone.
func slowest(plan []Stage, took func(i int) int64) string {
	if len(plan) < 2 {
		return ""
	}
	longest := 0
	for i := range plan {
		if took(i) > took(longest) {
			longest = i
		}
	}
	return plan[longest].Name
}

func totals(records []v1alpha1.Recovery) []int64 {
	var all []int64
	for _, r := range records {
		all = append(all, *r.TotalMilliseconds)
	}
	return all
}

// median is the lower one of two; 0: of none.
func median[T cmp.Ordered](values []T) T {
	var none T
	if len(values) == 0 {
		return none
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)-1)/2]
}
