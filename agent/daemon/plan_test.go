package daemon

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"rekindle.edge/agent/host"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

// TestARecordKeepsWhatItWasMeasuredOn: the forecast of another plan needs it.
func TestARecordKeepsWhatItWasMeasuredOn(t *testing.T) {
	store, err := snapshot.Open(t.TempDir(), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	var pods []snapshot.Object
	for i, namespace := range []string{"db", "shop", "shop", "shop"} {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(i))}}
		pod.Spec.Containers = []corev1.Container{{ReadinessProbe: &corev1.Probe{InitialDelaySeconds: int32(i)}}}
		pod.Status.Phase = corev1.PodRunning
		if i == 3 {
			pod.Status.Phase = corev1.PodSucceeded // and is not started again
		}
		raw, err := json.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		pods = append(pods, snapshot.Object{Namespace: namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: "1", Raw: raw})
	}
	if err := store.Objects().Sync(snapshot.Scope{Resource: snapshot.Pods}, "1", pods); err != nil {
		t.Fatal(err)
	}
	contents, err := store.Load()
	if err != nil {
		t.Fatal(err)
	}
	l := newLoop(logr.Discard(), Machine{Clock: host.SystemClock{}}, store, contents, "one")
	record := func(names ...string) *v1alpha1.Recovery {
		r := &v1alpha1.Recovery{}
		for _, name := range names {
			r.Stages = append(r.Stages, v1alpha1.StageRecovery{Name: name})
		}
		l.notePlan(r)
		return r
	}
	want := []v1alpha1.StageRecovery{{Name: "Rest", Pods: 3, ProbeWaitMilliseconds: 2000}}
	if diff := cmp.Diff(want, record("Rest").Stages); diff != "" {
		t.Errorf("without a policy (-want +got):\n%s", diff)
	}
	l.spec = &snapshot.Spec{Spec: v1alpha1.NodeRecoverySpec{StartupOrdering: v1alpha1.StartupOrdering{Stages: []v1alpha1.Stage{
		{Name: "first", Pods: []v1alpha1.PodSelector{{Namespaces: []string{"db"}}}},
	}}}}
	want = []v1alpha1.StageRecovery{{Name: "Critical"}, {Name: "first", Pods: 1}, {Name: "Rest", Pods: 2, ProbeWaitMilliseconds: 2000}}
	if diff := cmp.Diff(want, record("Critical", "first", "Rest").Stages); diff != "" {
		t.Errorf("with a stage (-want +got):\n%s", diff)
	}
}
