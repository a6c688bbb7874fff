package timeline

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"rekindle.edge/api/v1alpha1"
)

const second = time.Second

// twoPods were Ready before the restart, a third was not, a fourth had ended.
func twoPods() map[string]LastSeen {
	return map[string]LastSeen{
		"a": {Name: "shop/a", Ready: true},
		"b": {Name: "shop/b", Ready: true},
		"c": {Name: "shop/broken"},
		"d": {Name: "shop/job", Finished: true},
	}
}

func running(key, name string, ready bool, containers ...string) Pod {
	return Pod{Key: key, Name: name, Ready: ready, Alive: ready, Restarts: true, Containers: containers}
}

// start is the boot up to a kubelet that serves, as every case has it.
func started() []Event {
	return []Event{
		InitStarted{At: 100 * time.Millisecond},
		KubeletStarted{At: 2 * second},
		Answered{At: 2500 * time.Millisecond, Online: true},
		KubeletHealthy{At: 3 * second},
	}
}

func listed(at time.Duration, pods ...Pod) PodsListed {
	list := PodsListed{At: at}
	for _, pod := range pods {
		list.Pods = append(list.Pods, PodSeen{At: at, Pod: pod})
	}
	return list
}

func TestTracker(t *testing.T) {
	// What the API server serves at first: Ready, of the boot before.
	stale := listed(3500*time.Millisecond, running("a", "shop/a", true, "old-a"), running("b", "shop/b", true, "old-b"))
	recovered := []Event{
		stale,
		SandboxReady{ID: "sa", At: 4 * second},
		ContainerRunning{ID: "new-a"},
		PodSeen{At: 5 * second, Pod: running("a", "shop/a", true, "new-a")},
		ContainerRunning{ID: "new-b"},
		PodSeen{At: 7 * second, Pod: running("b", "shop/b", true, "new-b")},
	}
	complete := v1alpha1.Recovery{
		BootID: "boot", PreviousEnd: v1alpha1.PreviousEndPowerLoss,
		ConnectivityAtStart: v1alpha1.ConnectivityOnline, ConnectivityAtEnd: v1alpha1.ConnectivityOnline,
		TotalMilliseconds: ptr.To[int64](7000),
		Phases: v1alpha1.RecoveryPhases{
			Kernel: ptr.To[int64](100), Userspace: ptr.To[int64](1900), KubeletStart: ptr.To[int64](1000),
			FirstSandbox: ptr.To[int64](1000), FirstReady: ptr.To[int64](1000), LastReady: ptr.To[int64](2000),
		},
		ExpectedPods: 2, ReadyPods: 2, NotReadyBefore: 1,
		Result: v1alpha1.RecoveryComplete, TargetSeconds: 30, TargetMet: v1alpha1.TruthTrue,
		SlowestPods: []v1alpha1.PodRecovery{
			{Pod: "shop/b", Milliseconds: ptr.To[int64](7000)},
			{Pod: "shop/a", Milliseconds: ptr.To[int64](5000)},
		},
	}
	with := func(change func(*v1alpha1.Recovery)) v1alpha1.Recovery {
		record := *complete.DeepCopy()
		change(&record)
		return record
	}
	cases := map[string]struct {
		pods   map[string]LastSeen
		events []Event
		want   v1alpha1.Recovery
		open   bool
	}{
		"every phase of a recovery is measured": {
			events: append(started(), recovered...),
			want:   complete,
		},
		"a Ready status of the boot before is not believed": {
			events: append(started(), stale, ContainerRunning{ID: "new-a"}),
			open:   true,
			want: with(func(r *v1alpha1.Recovery) {
				r.TotalMilliseconds, r.ReadyPods = nil, 0
				r.Phases.FirstSandbox, r.Phases.FirstReady, r.Phases.LastReady = nil, nil, nil
				r.Result, r.IncompleteReason, r.TargetMet = v1alpha1.RecoveryIncomplete, v1alpha1.IncompletePodsNotReady, v1alpha1.TruthFalse
				r.SlowestPods = []v1alpha1.PodRecovery{{Pod: "shop/a", Reason: reasonNotStarted}, {Pod: "shop/b", Reason: reasonNotStarted}}
			}),
		},
		"a container that is seen late does not move the time of Ready": {
			events: append(started(), stale,
				SandboxReady{ID: "sa", At: 4 * second},
				PodSeen{At: 5 * second, Pod: running("a", "shop/a", true, "new-a")},
				PodSeen{At: 7 * second, Pod: running("b", "shop/b", true, "new-b")},
				PodSeen{At: 8 * second, Pod: running("b", "shop/b", true, "new-b")},
				ContainerRunning{ID: "new-a"}, ContainerRunning{ID: "new-b"}),
			want: complete,
		},
		"a second kubelet, a second health answer and a repeated sandbox move no edge": {
			events: append(append(started(),
				KubeletStarted{At: 3500 * time.Millisecond}, KubeletHealthy{At: 4500 * time.Millisecond}),
				append(recovered, SandboxReady{ID: "sa", At: 6 * second}, SandboxReady{ID: "sa", At: 4 * second, Listed: true})...),
			want: complete,
		},
		"the event of a sandbox is better than its place in a list": {
			events: append(append(started(), SandboxReady{ID: "sa", At: 3200 * time.Millisecond, Listed: true}), recovered...),
			want:   complete,
		},
		"a pod that is deleted meanwhile is not expected any more": {
			events: append(started(), stale, SandboxReady{ID: "sa", At: 4 * second},
				ContainerRunning{ID: "new-a"}, PodSeen{At: 5 * second, Pod: running("a", "shop/a", true, "new-a")},
				PodGone{Key: "b"}),
			want: with(func(r *v1alpha1.Recovery) {
				r.TotalMilliseconds, r.ExpectedPods, r.ReadyPods = ptr.To[int64](5000), 1, 1
				r.Phases.LastReady = ptr.To[int64](0)
				r.SlowestPods = r.SlowestPods[1:]
			}),
		},
		"a pod that was deleted while the node was off is not expected": {
			events: append(started(), listed(3500*time.Millisecond, running("a", "shop/a", true, "old-a"), running("new", "shop/new", false)),
				SandboxReady{ID: "sa", At: 4 * second},
				ContainerRunning{ID: "new-a"}, PodSeen{At: 5 * second, Pod: running("a", "shop/a", true, "new-a")}),
			want: with(func(r *v1alpha1.Recovery) {
				r.TotalMilliseconds, r.ExpectedPods, r.ReadyPods = ptr.To[int64](5000), 1, 1
				r.Phases.LastReady = ptr.To[int64](0)
				r.SlowestPods = r.SlowestPods[1:]
			}),
		},
		"a pod that fails for good in this boot is not back": {
			events: append(started(), stale,
				SandboxReady{ID: "sa", At: 4 * second}, ContainerRunning{ID: "new-a"},
				PodSeen{At: 5 * second, Pod: running("a", "shop/a", true, "new-a")},
				PodSeen{At: 6 * second, Pod: Pod{Key: "b", Name: "shop/b", Finished: true, Restarts: true, Reason: "NodeAffinity"}}),
			open: true,
			want: with(func(r *v1alpha1.Recovery) {
				r.TotalMilliseconds, r.ReadyPods, r.Phases.LastReady = nil, 1, nil
				r.Result, r.IncompleteReason, r.TargetMet = v1alpha1.RecoveryIncomplete, v1alpha1.IncompletePodsNotReady, v1alpha1.TruthFalse
				r.SlowestPods = []v1alpha1.PodRecovery{{Pod: "shop/b", Reason: "NodeAffinity"}, {Pod: "shop/a", Milliseconds: ptr.To[int64](5000)}}
			}),
		},
		"pods that an orderly shutdown left Failed are not back": {
			events: append(started(), listed(3500*time.Millisecond,
				Pod{Key: "a", Name: "shop/a", Finished: true, Restarts: true, Reason: "Terminated"},
				Pod{Key: "b", Name: "shop/b", Finished: true, Restarts: true, Reason: "Terminated"})),
			open: true,
			want: with(func(r *v1alpha1.Recovery) {
				r.TotalMilliseconds, r.ReadyPods = nil, 0
				r.Phases.FirstSandbox, r.Phases.FirstReady, r.Phases.LastReady = nil, nil, nil
				r.Result, r.IncompleteReason, r.TargetMet = v1alpha1.RecoveryIncomplete, v1alpha1.IncompletePodsNotReady, v1alpha1.TruthFalse
				r.SlowestPods = []v1alpha1.PodRecovery{{Pod: "shop/a", Reason: "Terminated"}, {Pod: "shop/b", Reason: "Terminated"}}
			}),
		},
		"a static pod that an orderly shutdown left Failed is back when it runs": {
			events: append(append(started(), listed(3500*time.Millisecond,
				Pod{Key: "a", Name: "shop/a", Finished: true, Restarts: true, Reason: "Terminated", Containers: []string{"old-a"}},
				running("b", "shop/b", true, "old-b"))), recovered[1:]...),
			want: complete,
		},
		"pods that were over as their restart policy allows are not waited for": {
			events: append(started(), listed(3500*time.Millisecond,
				Pod{Key: "a", Name: "shop/a", Finished: true}, Pod{Key: "b", Name: "shop/b", Finished: true})),
			want: with(func(r *v1alpha1.Recovery) {
				r.TotalMilliseconds, r.ExpectedPods, r.ReadyPods = ptr.To[int64](3000), 0, 0
				r.Phases.FirstSandbox, r.Phases.FirstReady, r.Phases.LastReady = nil, nil, nil
				r.SlowestPods = nil
			}),
		},
		"a pod that ends as its restart policy allows is not waited for": {
			events: append(started(), stale,
				SandboxReady{ID: "sa", At: 4 * second}, ContainerRunning{ID: "new-a"},
				PodSeen{At: 5 * second, Pod: running("a", "shop/a", true, "new-a")},
				PodSeen{At: 6 * second, Pod: Pod{Key: "b", Name: "shop/b", Finished: true}}),
			want: with(func(r *v1alpha1.Recovery) {
				r.TotalMilliseconds, r.ExpectedPods, r.ReadyPods = ptr.To[int64](5000), 1, 1
				r.Phases.LastReady = ptr.To[int64](0)
				r.SlowestPods = r.SlowestPods[1:]
			}),
		},
		"with no pod expected the node is back when kubelet serves": {
			pods:   map[string]LastSeen{"c": {Name: "shop/broken"}},
			events: append(started(), SandboxReady{ID: "new", At: 4 * second}),
			want: with(func(r *v1alpha1.Recovery) {
				r.TotalMilliseconds, r.ExpectedPods, r.ReadyPods = ptr.To[int64](3000), 0, 0
				r.Phases.FirstSandbox, r.Phases.FirstReady, r.Phases.LastReady = nil, nil, nil
				r.SlowestPods = nil
			}),
		},
		"cut off, every pod waits for the pod list": {
			events: []Event{InitStarted{At: 100 * time.Millisecond}, Answered{At: second}, KubeletStarted{At: 2 * second}, KubeletHealthy{At: 3 * second}},
			open:   true,
			want: with(func(r *v1alpha1.Recovery) {
				r.ConnectivityAtStart, r.ConnectivityAtEnd = v1alpha1.ConnectivityOffline, v1alpha1.ConnectivityOffline
				r.TotalMilliseconds, r.ReadyPods = nil, 0
				r.Phases.FirstSandbox, r.Phases.FirstReady, r.Phases.LastReady = nil, nil, nil
				r.Result, r.IncompleteReason, r.TargetMet = v1alpha1.RecoveryIncomplete, v1alpha1.IncompleteNoPodList, v1alpha1.TruthFalse
				r.SlowestPods = []v1alpha1.PodRecovery{{Pod: "shop/a", Reason: v1alpha1.IncompleteNoPodList}, {Pod: "shop/b", Reason: v1alpha1.IncompleteNoPodList}}
			}),
		},
		"an unseen health edge leaves its time in the next phase": {
			events: append([]Event{InitStarted{At: 100 * time.Millisecond}, KubeletStarted{At: 2 * second}, Answered{At: 2 * second, Online: true},
				KubeletHealthy{At: 3 * second, Late: true}}, recovered...),
			want: with(func(r *v1alpha1.Recovery) {
				r.Phases.KubeletStart, r.Phases.FirstSandbox = nil, ptr.To[int64](2000)
			}),
		},
		"what the local API gives kubelet splits the time until the first sandbox": {
			events: append(append(started(), NodeServed{At: 3200 * time.Millisecond}, PodsServed{At: 3450 * time.Millisecond},
				NodeServed{At: 9 * second}, PodsServed{At: 9 * second}), recovered...),
			want: with(func(r *v1alpha1.Recovery) {
				r.Phases.NodeList, r.Phases.PodList, r.Phases.FirstSandbox = ptr.To[int64](200), ptr.To[int64](250), ptr.To[int64](550)
			}),
		},
		"kubelet that is given its Node before it is healthy": {
			events: append(append(started(), NodeServed{At: 2800 * time.Millisecond}, PodsServed{At: 3200 * time.Millisecond}), recovered...),
			want: with(func(r *v1alpha1.Recovery) {
				r.Phases.KubeletStart, r.Phases.NodeList = ptr.To[int64](800), ptr.To[int64](0)
				r.Phases.PodList, r.Phases.FirstSandbox = ptr.To[int64](400), ptr.To[int64](800)
			}),
		},
		"a pod that is held back is not waited for": {
			events: append(append(started(), recovered[:4]...),
				PodsHeld{Pods: []Held{{Key: "b", Name: "shop/b", Reason: "Held"}}}, PodsHeld{Pods: []Held{{Key: "b", Name: "shop/b", Reason: "Held"}}}, PodsHeld{}),
			want: with(func(r *v1alpha1.Recovery) {
				r.TotalMilliseconds, r.ExpectedPods, r.ReadyPods = ptr.To[int64](5000), 1, 1
				r.Phases.LastReady = ptr.To[int64](0)
				r.SlowestPods = r.SlowestPods[1:]
				r.HeldPods = []v1alpha1.HeldPod{{Pod: "shop/b", Reason: "Held"}}
			}),
		},
		"one that comes up once it is released stays apart": {
			events: append(append(started(), PodsHeld{Pods: []Held{{Key: "b", Name: "shop/b", Reason: "Held"}}}), recovered...),
			want: with(func(r *v1alpha1.Recovery) {
				r.TotalMilliseconds, r.ExpectedPods, r.ReadyPods = ptr.To[int64](5000), 1, 1
				r.Phases.LastReady = ptr.To[int64](0)
				r.SlowestPods = r.SlowestPods[1:]
				r.HeldPods = []v1alpha1.HeldPod{{Pod: "shop/b", Reason: "Held"}}
			}),
		},
		"a link that comes long after kubelet was not there at the start": {
			events: append([]Event{InitStarted{At: 100 * time.Millisecond}, KubeletStarted{At: 500 * time.Millisecond}, KubeletHealthy{At: second},
				Answered{At: 8 * second, Online: true}, TargetSet{Seconds: 6}}, recovered...),
			want: with(func(r *v1alpha1.Recovery) {
				r.ConnectivityAtStart = v1alpha1.ConnectivityOffline
				r.TargetSeconds, r.TargetMet = 6, v1alpha1.TruthFalse
				r.Phases.Userspace, r.Phases.KubeletStart, r.Phases.FirstSandbox = ptr.To[int64](400), ptr.To[int64](500), ptr.To[int64](3000)
			}),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pods := tc.pods
			if pods == nil {
				pods = twoPods()
			}
			tracker := NewTracker(Begin("boot", v1alpha1.PreviousEndPowerLoss, time.Time{}, 30, pods))
			for _, event := range tc.events {
				tracker.Observe(event)
			}
			if tracker.Complete() == tc.open {
				t.Errorf("Complete() = %v, want %v", tracker.Complete(), !tc.open)
			}
			got := tracker.State().Close(nil)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEdgesOutOfOrderStillAddUp(t *testing.T) {
	state := Begin("boot", v1alpha1.PreviousEndUnknown, time.Time{}, 30, twoPods())
	at := func(d time.Duration) *time.Duration { return &d }
	state.Edges = Edges{Init: at(1499 * time.Microsecond), Kubelet: at(2 * second), KubeletHealthy: at(9 * second), FirstSandbox: at(2500999 * time.Microsecond)}
	state.Expected["a"] = Expected{Name: "shop/a", ReadyAt: at(3333333 * time.Microsecond)}
	state.Expected["b"] = Expected{Name: "shop/b", ReadyAt: at(4999999 * time.Microsecond)}
	record := state.Close(nil)
	var sum int64
	for _, phase := range []*int64{record.Phases.Kernel, record.Phases.Userspace, record.Phases.KubeletStart,
		record.Phases.FirstSandbox, record.Phases.FirstReady, record.Phases.LastReady} {
		if phase == nil || *phase < 0 {
			t.Fatalf("a phase is unset or negative: %+v", record.Phases)
		}
		sum += *phase
	}
	if sum != *record.TotalMilliseconds || sum != 4999 {
		t.Errorf("phases add up to %d, total is %d, want 4999", sum, *record.TotalMilliseconds)
	}
}

func TestReadyTimeOfTheStatusItself(t *testing.T) {
	cases := map[string]struct {
		readyBy time.Duration
		want    time.Duration
	}{
		"a list long after Ready takes the time that the status gives": {readyBy: 5 * second, want: 5 * second},
		"a time after the arrival is no better":                        {readyBy: 90 * second, want: 60 * second},
		"a time before kubelet is of the boot before":                  {readyBy: second, want: 60 * second},
		"no time at all": {want: 60 * second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tracker := NewTracker(Begin("boot", v1alpha1.PreviousEndUnknown, time.Time{}, 30, map[string]LastSeen{"a": {Name: "shop/a", Ready: true}}))
			tracker.Observe(KubeletStarted{At: 2 * second})
			tracker.Observe(ContainerRunning{ID: "new-a"})
			tracker.Observe(PodsListed{At: 60 * second, Pods: []PodSeen{{At: 60 * second, Pod: running("a", "shop/a", true, "new-a"), ReadyBy: tc.readyBy}}})
			if got := *tracker.State().Expected["a"].ReadyAt; got != tc.want {
				t.Errorf("ready at %v, want %v", got, tc.want)
			}
		})
	}
}

func TestAnAgentThatIsKilledGoesOnWithTheRecord(t *testing.T) {
	pods := twoPods()
	tracker := NewTracker(Begin("boot", v1alpha1.PreviousEndPowerLoss, time.Time{}, 30, pods))
	for _, event := range append(started(), SandboxReady{ID: "sa", At: 4 * second}, ContainerRunning{ID: "new-a"},
		listed(5*second, running("a", "shop/a", true, "new-a"), running("b", "shop/b", false))) {
		tracker.Observe(event)
	}
	second := NewTracker(tracker.State())
	// Everything is seen again, as sources do when they start anew.
	for _, event := range []Event{
		InitStarted{At: 100 * time.Millisecond}, KubeletStarted{At: 6 * time.Second}, KubeletHealthy{At: 8 * time.Second, Late: true},
		SandboxReady{ID: "sa", At: 3900 * time.Millisecond, Listed: true}, ContainerRunning{ID: "new-a"}, ContainerRunning{ID: "new-b"},
		listed(8*time.Second, running("a", "shop/a", true, "new-a"), running("b", "shop/b", true, "new-b")),
	} {
		second.Observe(event)
	}
	got := second.State()
	want := tracker.State()
	at := 8 * time.Second
	want.Expected["b"] = Expected{Name: "shop/b", ReadyAt: &at}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("record after the second start (-want +got):\n%s", diff)
	}
}

func TestCloseRestarted(t *testing.T) {
	cases := map[string]struct {
		lastSign time.Duration
		want     v1alpha1.TruthValue
	}{
		"a restart within the target leaves it open":        {lastSign: 20 * second, want: v1alpha1.TruthUnknown},
		"a restart after the target's time has missed it":   {lastSign: 31 * second, want: v1alpha1.TruthFalse},
		"a restart without any sign of life leaves it open": {want: v1alpha1.TruthUnknown},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			record := Begin("boot", v1alpha1.PreviousEndClean, time.Time{}, 30, twoPods()).CloseRestarted(tc.lastSign, nil)
			if record.TargetMet != tc.want || record.Result != v1alpha1.RecoveryIncomplete || record.IncompleteReason != v1alpha1.IncompleteRestarted || record.TotalMilliseconds != nil {
				t.Errorf("got %+v, want target met %s and RestartedBeforeEnd", record, tc.want)
			}
		})
	}
}

func TestConnectivityAtStart(t *testing.T) {
	kubelet, late := KubeletStarted{At: 2 * second}, KubeletHealthy{At: 290 * second, Late: true}
	cases := map[string]struct {
		events []Event
		want   v1alpha1.Connectivity
	}{
		"an answer soon after kubelet is healthy":               {events: []Event{kubelet, KubeletHealthy{At: 9 * second}, Answered{At: 14 * second, Online: true}}, want: v1alpha1.ConnectivityOnline},
		"an answer long after it":                               {events: []Event{kubelet, KubeletHealthy{At: 9 * second}, Answered{At: 15 * second, Online: true}}, want: v1alpha1.ConnectivityOffline},
		"no answer at all":                                      {events: []Event{kubelet, KubeletHealthy{At: 9 * second}}, want: v1alpha1.ConnectivityOffline},
		"nobody saw health begin, an answer soon after kubelet": {events: []Event{kubelet, late, Answered{At: 7 * second, Online: true}}, want: v1alpha1.ConnectivityOnline},
		"nobody saw health begin, an answer minutes later":      {events: []Event{kubelet, late, Answered{At: 300 * second, Online: true}}, want: v1alpha1.ConnectivityOffline},
		"kubelet has no health endpoint":                        {events: []Event{kubelet, Answered{At: 300 * second, Online: true}}, want: v1alpha1.ConnectivityOffline},
		"nobody saw kubelet":                                    {events: []Event{Answered{At: 300 * second, Online: true}}, want: v1alpha1.ConnectivityOffline},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tracker := NewTracker(Begin("boot", v1alpha1.PreviousEndPowerLoss, time.Time{}, 30, twoPods()))
			for _, event := range tc.events {
				tracker.Observe(event)
			}
			if got := tracker.State().Close(nil).ConnectivityAtStart; got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestStagesAreInTheRecord(t *testing.T) {
	tracker := NewTracker(Begin("boot", v1alpha1.PreviousEndUnknown, time.Time{}, 30, twoPods()))
	stages := []v1alpha1.StageRecovery{{Name: "one", OpenedMilliseconds: 4000, Result: v1alpha1.StageTimedOut, WaitedFor: "shop/a"}}
	if !tracker.Observe(StagesOpened{stages}) || tracker.Observe(StagesOpened{slices.Clone(stages)}) {
		t.Error("the record changes with the stages, and only then")
	}
	if diff := cmp.Diff(stages, tracker.State().Close(nil).Stages); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
}

func TestDeadline(t *testing.T) {
	for target, want := range map[int32]time.Duration{30: 10 * time.Minute, 120: 10 * time.Minute, 121: 605 * second} {
		if got := (State{TargetSeconds: target}).Deadline(); got != want {
			t.Errorf("deadline for a target of %d s is %v, want %v", target, got, want)
		}
	}
}

func TestRemembers(t *testing.T) {
	broken := PodSeen{At: 5 * second, Pod: running("a", "shop/a", false, "new-a")}
	cases := map[string]struct {
		events []Event
		// after is how long after the first look the second is.
		after time.Duration
		want  bool
	}{
		"a pod that has not come up counts as before the restart": {after: time.Minute, want: true},
		"a pod whose containers are of the boot before as well":   {events: []Event{broken}, after: time.Minute, want: true},
		"a pod that has just come up as well":                     {events: []Event{broken, ContainerRunning{ID: "new-a"}}, after: second, want: true},
		"a pod that runs and is not Ready is what it is":          {events: []Event{broken, ContainerRunning{ID: "new-a"}}, after: settleTime},
		"a pod that is Ready is what it is": {
			events: []Event{ContainerRunning{ID: "new-a"}, PodSeen{At: 5 * second, Pod: running("a", "shop/a", true, "new-a")}},
		},
		"a pod that is gone is not remembered": {events: []Event{PodGone{Key: "a"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tracker := NewTracker(Begin("boot", v1alpha1.PreviousEndUnknown, time.Time{}, 30, twoPods()))
			for _, event := range tc.events {
				tracker.Observe(event)
			}
			tracker.Remembers("a", 10*second)
			if got := tracker.Remembers("a", 10*second+tc.after); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
