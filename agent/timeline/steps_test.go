package timeline

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rekindle.edge/api/v1alpha1"
)

func TestSteps(t *testing.T) {
	const second = time.Second
	call := func(step Step, began, runtime, ended time.Duration) CallEnded {
		return CallEnded{Key: "a", Step: step, Began: began, Ended: ended, Runtime: runtime}
	}
	tests := map[string]struct {
		calls []Event
		want  *v1alpha1.PodSteps
	}{
		"nobody saw a call": {},
		"kubelet, agent and runtime are told apart": {
			calls: []Event{
				call(StepSandbox, 10*second, second, 14*second), // held for 3 s
				call(StepPull, 14500*time.Millisecond, 2*second, 16500*time.Millisecond),
				call(StepCreate, 17*second, second/2, 17500*time.Millisecond),
				call(StepStart, 18*second, second/4, 18250*time.Millisecond),
			},
			want: &v1alpha1.PodSteps{
				Held: 3000, Kubelet: 1500,
				Sandbox: 1000, Pull: 2000, Create: 500, Start: 250,
			},
		},
		"all attempts and all containers count": {
			calls: []Event{
				call(StepSandbox, 10*second, 0, 12*second), call(StepSandbox, 13*second, second, 14*second),
				call(StepCreate, 14*second, second, 15*second), call(StepStart, 15*second, second, 16*second),
				call(StepCreate, 16*second, second, 17*second), call(StepStart, 17*second, second, 18*second),
			},
			want: &v1alpha1.PodSteps{
				Held: 2000, Kubelet: 1000,
				Sandbox: 1000, Create: 2000, Start: 2000,
			},
		},
		"no container was started": {
			calls: []Event{call(StepSandbox, 10*second, second, 14*second)},
			want:  &v1alpha1.PodSteps{Held: 3000, Sandbox: 1000},
		},
		"a container of a sandbox that was not seen": {
			calls: []Event{call(StepCreate, 10*second, second, 11*second)},
		},
		"another pod's": {
			calls: []Event{CallEnded{Key: "b", Step: StepSandbox, Ended: second}},
		},
		"what comes after the pod was Ready does not count": {
			calls: []Event{
				call(StepSandbox, 10*second, second, 11*second),
				ContainerRunning{ID: "c"},
				PodSeen{At: 12 * second, Pod: Pod{Key: "a", Ready: true, Containers: []string{"c"}}},
				call(StepSandbox, 20*second, second, 21*second),
			},
			want: &v1alpha1.PodSteps{Sandbox: 1000},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tracker := NewTracker(Begin("boot", v1alpha1.PreviousEndPowerLoss, time.Time{}, 30, map[string]LastSeen{"a": {Name: "default/a", Ready: true}}))
			for _, event := range tc.calls {
				tracker.Observe(event)
			}
			// An agent that is killed goes on with what was stored.
			data, err := json.Marshal(tracker.State())
			if err != nil {
				t.Fatal(err)
			}
			var state State
			if err := json.Unmarshal(data, &state); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, state.Close(nil).SlowestPods[0].Steps); diff != "" {
				t.Error(diff)
			}
		})
	}
}
