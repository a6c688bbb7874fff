package order

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"rekindle.edge/api/v1alpha1"
)

// stage selects pods by the label stage.
func stage(name string, change ...func(*v1alpha1.Stage)) v1alpha1.Stage {
	s := v1alpha1.Stage{
		Name: name, WaitFor: v1alpha1.WaitForReady, TimeoutSeconds: 60,
		Pods: []v1alpha1.PodSelector{{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"stage": name}}}},
	}
	for _, c := range change {
		c(&s)
	}
	return s
}

func started(s *v1alpha1.Stage) { s.WaitFor = v1alpha1.WaitForStarted }
func timeout(seconds int32) func(*v1alpha1.Stage) {
	return func(s *v1alpha1.Stage) { s.TimeoutSeconds = seconds }
}
func oneAtOnce(s *v1alpha1.Stage) { s.MaxParallel = ptr.To[int32](1) }
func selects(p ...v1alpha1.PodSelector) func(*v1alpha1.Stage) {
	return func(s *v1alpha1.Stage) { s.Pods = p }
}

// play is a planner and the time.
type play struct {
	*testing.T
	*planner
	now time.Duration
}

func newPlay(t *testing.T, stages ...v1alpha1.Stage) *play {
	t.Helper()
	groups, total, err := groupsOf(v1alpha1.StartupOrdering{Stages: stages}, 2)
	if err != nil {
		t.Fatal(err)
	}
	p := &play{t, newPlanner(groups, total, state{BootID: "boot"}, map[string]bool{}, 0), 0}
	p.list(nil)
	return p
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// put gives a pod to the list: of a name in namespace shop, or of namespace/name, and a
// stage.
func (p *play) add(id, stage string, change ...func(*pod)) *pod {
	namespace, plain, ok := strings.Cut(id, "/")
	if !ok {
		namespace, plain = "shop", id
	}
	made := &pod{
		name: name{namespace, plain}, uid: "uid-" + plain, labels: map[string]string{"stage": stage},
		created: epoch.Add(time.Duration(len(p.pods)) * time.Hour), ready: true, containers: []string{"old-" + plain}, ips: []string{"10.0.0.1"},
	}
	for _, c := range change {
		c(made)
	}
	p.put(made)
	return made
}

// call is a call of a pod that waits for its turn.
func (p *play) call(of *pod, change ...func(*call)) *call {
	asked := *of
	c := &call{pod: &asked, since: p.now, verdict: make(chan error, 1)}
	for _, f := range change {
		f(c)
	}
	p.calls[c] = true
	p.lastCall = p.now
	return c
}

// change of a pod's state.
func (p *play) change(of *pod, change func(*pod)) *pod {
	next := *of
	change(&next)
	p.put(&next)
	return &next
}

// starts is the status of a pod whose container was started in this boot.
func (p *play) starts(of *pod) *pod {
	id := "new-" + of.name.name
	p.running[id] = true
	return p.change(of, func(pod *pod) { pod.containers, pod.ready = []string{id}, false })
}

// wells is the status of a pod that is Ready in this boot.
func (p *play) wells(of *pod) *pod {
	return p.change(p.starts(of), func(pod *pod) { pod.ready = true })
}

// made ends a call for whose pod a sandbox was made.
func (p *play) makes(c *call) {
	p.made[c.pod.name] = true
	delete(p.calls, c)
}

// at steps at a time, given in milliseconds, and wants the calls of these pods to go on.
func (p *play) at(milliseconds int, want ...string) decision {
	p.Helper()
	p.now = time.Duration(milliseconds) * time.Millisecond
	d := p.step(p.now)
	var got []string
	for _, c := range d.release {
		got = append(got, c.pod.name.name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		p.Errorf("after %s (-want +got):\n%s", p.now, diff)
	}
	return d
}

// refuses wants a step to end calls, by pod and a part of the reason.
func (p *play) refuses(milliseconds int, want map[string]string) {
	p.Helper()
	p.now = time.Duration(milliseconds) * time.Millisecond
	d := p.step(p.now)
	if len(d.release) > 0 {
		p.Errorf("%d calls go on", len(d.release))
	}
	for c, err := range d.refuse {
		part, ok := want[c.pod.name.name]
		if !ok || !strings.Contains(err.Error(), part) || !strings.Contains(err.Error(), "network is not ready") {
			p.Errorf("%s is refused with %v, want %q", c.pod, err, part)
		}
		delete(want, c.pod.name.name)
	}
	for pod := range want {
		p.Errorf("%s is not refused", pod)
	}
}

// stages wants the record.
func (p *play) stages(want ...v1alpha1.StageRecovery) {
	p.Helper()
	if diff := cmp.Diff(want, p.state.record()); diff != "" {
		p.Errorf("stages (-want +got):\n%s", diff)
	}
}

func opensAt(name string, milliseconds int64, result v1alpha1.StageResult, waitedFor ...string) v1alpha1.StageRecovery {
	return v1alpha1.StageRecovery{Name: name, OpenedMilliseconds: milliseconds, Result: result, WaitedFor: strings.Join(waitedFor, "")}
}

func critical(p *pod)             { p.priority, p.priorityClass = 2_000_001_000, nodeCritical }
func static(p *pod)               { p.static = true }
func onNode(p *pod)               { p.hostNetwork = true }
func over(p *pod)                 { p.over = true }
func deleting(p *pod)             { p.deleting = true }
func priority(n int32) func(*pod) { return func(p *pod) { p.priority = n } }
