package daemon

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rekindle.edge/agent/report"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/agent/timeline"
	"rekindle.edge/agent/timeline/source"
	"rekindle.edge/api/v1alpha1"
)

// Witness tells the record what the local API and the gate see of kubelet. What kubelet waits
// for never waits here. Recovery, Spec and Expected are of the
// agent's start, and for its goroutine.
type Witness struct {
	loop *loop
	// facts are what is reported.
	facts func() report.Facts
}

// Verdict is the condition RestartReady, and how many findings there are of each severity;
// unset until there was a dry run.
func (w Witness) Verdict() (metav1.Condition, map[v1alpha1.Severity]int) {
	facts := w.facts()
	if facts.Ready.Type == "" {
		return metav1.Condition{}, nil
	}
	count := map[v1alpha1.Severity]int{v1alpha1.SeverityBlocksNode: 0, v1alpha1.SeverityBlocksPod: 0, v1alpha1.SeveritySlows: 0}
	for _, finding := range facts.Findings {
		count[finding.Severity]++
	}
	return facts.Ready, count
}

// Forecast of the next restart; nil until there was a dry run.
func (w Witness) Forecast() *v1alpha1.Forecast { return w.facts().Forecast }

// Listed is called when kubelet was given a collection from the start.
func (w Witness) Listed(resource schema.GroupVersionResource) {
	at := w.loop.machine.Clock.Boot()
	switch resource {
	case snapshot.Nodes:
		w.loop.offer(timeline.NodeServed{At: at})
	case snapshot.Pods:
		w.loop.offer(timeline.PodsServed{At: at})
	}
}

// PodWritten is called with a pod when kubelet has written its status, and the API server
// could not be told. While cut off it is the only word of a kubelet that has no socket for
// its pods.
func (w Witness) PodWritten(raw []byte) {
	var pod corev1.Pod
	if json.Unmarshal(raw, &pod) == nil {
		w.loop.offer(source.KubeletSaw(&pod, w.loop.machine.Clock.Boot(), w.loop.wall))
	}
}

// Recovery says whether this boot is measured, and gives a channel that is closed when its
// recovery is over.
func (w Witness) Recovery() (open bool, over <-chan struct{}) {
	return w.loop.tracker != nil, w.loop.closed
}

// PolicyUnknown says that this agent cannot know yet what policy applies to the node: its
// store is new, and the API server has not said.
func (w Witness) PolicyUnknown() bool { return w.loop.fresh && !w.loop.heard.Load() }

// Spec is the node's as the boot begins; nil: there is none.
func (w Witness) Spec() *snapshot.Spec { return w.loop.spec }

// Expected are the pods that are expected back, as namespace/name.
func (w Witness) Expected() []string {
	var pods []string
	if w.loop.tracker != nil {
		for _, pod := range w.loop.tracker.State().Expected {
			pods = append(pods, pod.Name)
		}
	}
	return pods
}

// CallEnded is told of kubelet's calls that start pods.
func (w Witness) CallEnded(call timeline.CallEnded) { w.loop.offer(call) }

// StagesOpened is told of the stages of this boot. It may wait.
func (w Witness) StagesOpened(stages []v1alpha1.StageRecovery) {
	w.loop.emit(timeline.StagesOpened{Stages: stages})
}

// LastRecovery is the newest record, nil if there is none.
func (w Witness) LastRecovery() *v1alpha1.Recovery {
	if recoveries := w.loop.reported.Load().Recoveries; len(recoveries) > 0 {
		return &recoveries[0]
	}
	return nil
}

// offer hands an event to the loop if that has room for it.
func (l *loop) offer(event timeline.Event) {
	select {
	case l.events <- event:
	default:
		l.log.V(1).Info("Event of the local API is not measured, too many wait")
	}
}
