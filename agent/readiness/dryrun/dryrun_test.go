package dryrun

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/agent/config"
	"rekindle.edge/agent/cri"
	"rekindle.edge/agent/host"
	"rekindle.edge/agent/localapi"
	"rekindle.edge/agent/readiness/gather"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

type nobody struct{}

func (nobody) Read() (*localapi.Identity, error)                       { return nil, errors.New("none") }
func (nobody) MainPID(context.Context, string) (int, error)            { return 0, nil }
func (nobody) UnitFile(context.Context, string) (host.UnitFile, error) { return host.UnitFile{}, nil }

func TestANewFindingIsToldOnce(t *testing.T) {
	store, err := snapshot.Open(t.TempDir(), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	settings := config.Default()
	runtime := cri.New("unix://" + t.TempDir() + "/none.sock")
	defer func() { _ = runtime.Close() }()
	const pace = 50 * time.Millisecond
	d := &DryRun{Every: pace, Gatherer: &gather.Gatherer{
		Settings: settings, Identity: nobody{}, Units: nobody{}, Runtime: runtime, Root: t.TempDir(), Now: time.Now,
		Missed:  func() []v1alpha1.MissedResource { return nil },
		Serving: func() metav1.Condition { return metav1.Condition{} },
	}}
	ctx, cancel := context.WithCancel(t.Context())
	var told atomic.Int32
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.Run(ctx, store.Objects(), func() *snapshot.Spec { return nil }, func() { told.Add(1) })
	}()
	defer func() { cancel(); <-done }()
	has := func(reason string) bool {
		if result := d.Latest(); result != nil {
			for _, f := range result.Findings {
				if f.Reason == reason {
					return true
				}
			}
		}
		return false
	}
	eventually(t, func() bool { return has(v1alpha1.ReasonPodListNotServed) })

	// A pod comes that needs what is not kept.
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "c", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}}}}}
	raw, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	err = store.Objects().Sync(snapshot.Scope{Resource: snapshot.Pods}, "5", []snapshot.Object{{Namespace: "shop", Name: "web", UID: "u", ResourceVersion: "5", Raw: raw}})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return has(v1alpha1.ReasonObjectMissing) && !has(v1alpha1.ReasonPodListNotServed) })
	if n := told.Load(); n < 1 || n > 3 {
		t.Errorf("told %d times", n)
	}
	before := told.Load()
	time.Sleep(10 * pace)
	if n := told.Load(); n != before {
		t.Errorf("told %d times more although nothing has changed", n-before)
	}
}

func eventually(t *testing.T, what func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !what(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it did not come about")
		}
	}
}
