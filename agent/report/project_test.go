package report

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

var noon = metav1.NewTime(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC))

func record(id string) v1alpha1.Recovery {
	r := v1alpha1.Recovery{
		BootID: id, PreviousEnd: v1alpha1.PreviousEndPowerLoss, ConnectivityAtStart: v1alpha1.ConnectivityOffline,
		ConnectivityAtEnd: v1alpha1.ConnectivityOnline, DownMilliseconds: ptr.To[int64](86_400_000), TotalMilliseconds: ptr.To[int64](123_456),
		Phases: v1alpha1.RecoveryPhases{Kernel: ptr.To[int64](12345), Userspace: ptr.To[int64](12345), KubeletStart: ptr.To[int64](12345),
			NodeList: ptr.To[int64](12345), PodList: ptr.To[int64](12345), FirstSandbox: ptr.To[int64](12345), FirstReady: ptr.To[int64](12345), LastReady: ptr.To[int64](12345)},
		ExpectedPods: 110, ReadyPods: 109, NotReadyBefore: 3, Result: v1alpha1.RecoveryIncomplete,
		IncompleteReason: v1alpha1.IncompletePodsNotReady, TargetSeconds: 30, TargetMet: v1alpha1.TruthFalse,
	}
	for i := range 5 {
		pod := fmt.Sprintf("warehouse-%d/inventory-controller-6d4b75cb6d-hx%d2k", i, i)
		r.SlowestPods = append(r.SlowestPods, v1alpha1.PodRecovery{Pod: pod, Milliseconds: ptr.To[int64](123_456), Reason: "CrashLoopBackOff", Steps: &v1alpha1.PodSteps{
			Held: 12_345, Sandbox: 1_234, Pull: 123_456,
			Create: 1_234, Start: 1_234, Kubelet: 12_345,
		}})
		r.HeldPods = append(r.HeldPods, v1alpha1.HeldPod{Pod: pod, Reason: "AttachedVolumeNotSynced"})
	}
	for i := range 16 {
		r.Stages = append(r.Stages, v1alpha1.StageRecovery{
			Name: fmt.Sprintf("critical-control-loops-%d", i), OpenedMilliseconds: 123_456, Result: v1alpha1.StageTimedOut, WaitedFor: r.SlowestPods[0].Pod,
		})
	}
	return r
}

func records(n int) []v1alpha1.Recovery {
	var all []v1alpha1.Recovery
	for i := range n {
		all = append(all, record(fmt.Sprintf("d3a4f3a0-3767-4022-bbfe-ad2645b3a4%02d", i)))
	}
	return all
}

func TestProject(t *testing.T) {
	spec := &snapshot.Spec{Generation: 7, Spec: v1alpha1.NodeRecoverySpec{Mode: v1alpha1.ModeEnforce}}
	facts := Facts{AgentVersion: "v0.1.0", Spec: spec, Recoveries: records(8)}
	status := Project(facts, v1alpha1.NodeRecoveryStatus{}, noon)

	t.Run("five records are kept, the newest with its pods", func(t *testing.T) {
		if len(status.Recoveries) != 5 || len(status.Recoveries[0].SlowestPods) != 5 || len(status.Recoveries[0].HeldPods) != 5 || len(status.Recoveries[0].Stages) != 16 {
			t.Errorf("got %+v", status.Recoveries)
		}
		for _, r := range status.Recoveries[1:] {
			if r.SlowestPods != nil || r.HeldPods != nil || r.Stages != nil {
				t.Errorf("record %s carries pods", r.BootID)
			}
		}
		for i, pod := range status.Recoveries[0].SlowestPods {
			if (pod.Steps != nil) != (i == 0) {
				t.Errorf("pod %d has steps %v, only the slowest one has them here", i, pod.Steps)
			}
		}
	})
	t.Run("the store is left as it is", func(t *testing.T) {
		if diff := cmp.Diff(records(8), facts.Recoveries); diff != "" {
			t.Errorf("facts (-want +got):\n%s", diff)
		}
	})
	t.Run("a projection of its own result is the same", func(t *testing.T) {
		again := Project(facts, status, metav1.NewTime(noon.Add(time.Hour)))
		if diff := cmp.Diff(status, again); diff != "" {
			t.Errorf("second projection (-first +second):\n%s", diff)
		}
	})
	t.Run("every condition is there, of the spec's generation", func(t *testing.T) {
		got := map[string]string{}
		for _, c := range status.Conditions {
			if c.ObservedGeneration != 7 || c.Status == metav1.ConditionTrue || !c.LastTransitionTime.Equal(&noon) {
				t.Errorf("condition %+v", c)
			}
			got[c.Type] = c.Reason
		}
		want := map[string]string{
			v1alpha1.ConditionRestartReady: v1alpha1.ReasonNotEvaluated, v1alpha1.ConditionSnapshotFresh: v1alpha1.ReasonNotSynced,
			v1alpha1.ConditionImagesWarm: v1alpha1.ReasonNotInstalled, v1alpha1.ConditionLocalAPIServing: v1alpha1.ReasonNotInstalled,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("reasons (-want +got):\n%s", diff)
		}
	})
	t.Run("images are as they were told", func(t *testing.T) {
		warm := metav1.Condition{Type: v1alpha1.ConditionImagesWarm, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonImagesPresent}
		got := Project(Facts{Warm: warm, Images: &v1alpha1.ImagesStatus{Wanted: 2}}, v1alpha1.NodeRecoveryStatus{}, noon)
		if got.Images.Wanted != 2 || got.Conditions[2].Reason != v1alpha1.ReasonImagesPresent {
			t.Errorf("images %+v, condition %+v", got.Images, got.Conditions[2])
		}
		begun := Facts{Warm: metav1.Condition{Type: v1alpha1.ConditionImagesWarm, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotEvaluated}}
		if diff := cmp.Diff(got, Project(begun, got, noon)); diff != "" {
			t.Errorf("an agent that has just begun (-want +got):\n%s", diff)
		}
	})
	t.Run("what is too long is cut", func(t *testing.T) {
		long := record(strings.Repeat("b", 99))
		long.IncompleteReason = strings.Repeat("r", 99)
		long.SlowestPods = []v1alpha1.PodRecovery{{Pod: strings.Repeat("ü", 400), Reason: strings.Repeat("r", 99)}}
		long.HeldPods = []v1alpha1.HeldPod{{Pod: strings.Repeat("p", 400), Reason: strings.Repeat("r", 99)}}
		got := Project(Facts{AgentVersion: strings.Repeat("v", 99), Recoveries: []v1alpha1.Recovery{long}}, v1alpha1.NodeRecoveryStatus{}, noon)
		r := got.Recoveries[0]
		for name, tc := range map[string]struct {
			got  string
			want int
		}{
			"version": {got.AgentVersion, 64}, "boot id": {r.BootID, 36}, "reason": {r.IncompleteReason, 64},
			"slow pod": {r.SlowestPods[0].Pod, 317}, "slow pod's reason": {r.SlowestPods[0].Reason, 64},
			"held pod": {r.HeldPods[0].Pod, 317}, "held pod's reason": {r.HeldPods[0].Reason, 64},
		} {
			if n := len([]rune(tc.got)); n != tc.want {
				t.Errorf("%s has %d characters, want %d", name, n, tc.want)
			}
		}
	})
}

// TestSize: an object in etcd of every node of a large cluster must be small.
func TestSize(t *testing.T) {
	size := func(status v1alpha1.NodeRecoveryStatus) int {
		data, err := json.Marshal(status)
		if err != nil {
			t.Fatal(err)
		}
		return len(data)
	}
	facts := Facts{AgentVersion: "v0.1.0", Spec: &snapshot.Spec{Generation: 12}, Recoveries: records(8)}
	typical := Project(facts, v1alpha1.NodeRecoveryStatus{}, noon)
	for i := range typical.Recoveries {
		r := &typical.Recoveries[i]
		r.Result, r.IncompleteReason, r.TargetMet, r.HeldPods = v1alpha1.RecoveryComplete, "", v1alpha1.TruthTrue, nil
		r.Stages = r.Stages[:min(2, len(r.Stages))]
		for j := range r.Stages {
			r.Stages[j].Result, r.Stages[j].WaitedFor = v1alpha1.StageReady, ""
		}
		for j := range r.SlowestPods {
			r.SlowestPods[j].Reason = ""
			if steps := r.SlowestPods[j].Steps; steps != nil {
				steps.Pull = 0 // its images are there
			}
		}
	}
	typical.Snapshot = &v1alpha1.SnapshotStatus{Generation: 4711, InStepTime: &noon, Objects: 240, Bytes: 3 << 20}
	typical.Images = &v1alpha1.ImagesStatus{Wanted: 24, Present: 24, Pinned: 24, Bytes: 4 << 30}
	typical.Forecast = &v1alpha1.Forecast{TotalMilliseconds: 12345, BasedOn: 5}
	if got := size(typical); got > 4<<10 {
		t.Errorf("a typical status has %d bytes, more than 4 KiB", got)
	}

	full := Project(facts, v1alpha1.NodeRecoveryStatus{}, noon)
	full.Snapshot, full.Images, full.Forecast, full.SurvivesOfflineUntil = typical.Snapshot, typical.Images.DeepCopy(), typical.Forecast, &noon
	full.Forecast.SlowestStage = "critical-control-loops"
	for len(full.Conditions) < 8 {
		full.Conditions = append(full.Conditions, metav1.Condition{Type: "Another", Status: metav1.ConditionFalse, Reason: "SnapshotOutOfDate",
			LastTransitionTime: noon, Message: strings.Repeat("What is wrong and what to do. ", 6)})
	}
	full.FindingsTotal = 4000
	for range 10 {
		full.Findings = append(full.Findings, v1alpha1.Finding{
			Reason: "ImagePullPolicyAlways", Severity: v1alpha1.SeverityBlocksPod, Pod: "warehouse-3/inventory-controller-6d4b75cb6d-hx52k",
			Object: "deployment/inventory-controller", Message: strings.Repeat("What is wrong and what to do. ", 8),
		})
		full.Images.Problems = append(full.Images.Problems, v1alpha1.ImageProblem{
			Image: "registry.example.com/warehouse/inventory-controller@sha256:" + strings.Repeat("0", 64), Reason: "ContentMissing"})
		full.MissedResources = append(full.MissedResources, v1alpha1.MissedResource{
			Group: "projectcalico.example.org", Resource: "felixconfigurations", Client: "calico-node/v3.30.1 (linux/arm64) projectcalico", Count: 123456})
	}
	if got := size(full); got > 16<<10 {
		t.Errorf("a status with every list at its bound has %d bytes, more than 16 KiB", got)
	} else {
		t.Logf("typical %d bytes, full %d bytes", size(typical), got)
	}
}
