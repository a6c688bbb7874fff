package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"rekindle.edge/agent/doctor"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

// storeOnly is a configuration of a node whose agent does not run and has a store.
func storeOnly(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	// An agent that runs on this machine is none of the test's.
	was := doctorSocket
	doctorSocket = filepath.Join(dir, "agent.sock")
	t.Cleanup(func() { doctorSocket = was })
	store, err := snapshot.Open(filepath.Join(dir, "state"), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "agent.yaml")
	text := "stateDir: " + dir + "/state\nkubeletRootDir: " + dir + "/kubelet\ncriEndpoint: unix://" + dir + "/cri.sock\nkubeconfig: " + dir + "/none\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDoctorWithoutAnAgentReadsTheStore(t *testing.T) {
	path := storeOnly(t)
	for _, format := range []string{"json", "yaml"} {
		var out, problems strings.Builder
		code := command([]string{"doctor", "-o", format, "--config", path}, &out, &problems)
		var report doctor.Report
		var err error
		if format == "json" {
			err = json.Unmarshal([]byte(out.String()), &report)
		} else {
			err = yaml.UnmarshalStrict([]byte(out.String()), &report)
		}
		if err != nil || code != 1 || report.Source != doctor.FromStore || report.Reason != v1alpha1.ReasonPodListNotServed {
			t.Errorf("%s: exit code %d, error %v, report %+v, %s", format, code, err, report, problems.String())
		}
	}
	var out strings.Builder
	if code := command([]string{"doctor", "--config", path}, &out, &out); code != 1 || !strings.Contains(out.String(), "would NOT come back") {
		t.Errorf("exit code %d:\n%s", code, out.String())
	}
	left, err := filepath.Glob(filepath.Join(tempDir(), "rekindle-doctor-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %v %v", left, err)
	}
}

// A running agent's answer is printed whole, and the exit code says it too.
func TestDoctorAsksTheAgent(t *testing.T) {
	path := storeOnly(t)
	var findings []v1alpha1.Finding
	for i := range 110 {
		findings = append(findings, v1alpha1.Finding{Reason: "ImageMissing", Severity: v1alpha1.SeverityBlocksPod, Pod: fmt.Sprint("shop/web-", i), Message: "Pull it."})
	}
	report := doctor.Report{Source: doctor.FromAgent}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- doctor.Serve(ctx, doctorSocket, func() doctor.Report { return report }) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	}()
	for range 100 {
		if _, err := doctor.Ask(ctx, doctorSocket); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	for name, tc := range map[string]struct {
		ready    metav1.ConditionStatus
		findings []v1alpha1.Finding
		code     int
		words    string
	}{
		"ready":         {ready: metav1.ConditionTrue, words: "would come back"},
		"not ready":     {ready: metav1.ConditionFalse, findings: findings, code: 1, words: "would NOT come back"},
		"it cannot say": {ready: metav1.ConditionUnknown, code: 2, words: "cannot be told"},
	} {
		report.Ready, report.Findings = tc.ready, tc.findings
		for _, format := range []string{"", "json", "yaml"} {
			var out strings.Builder
			if code := command([]string{"doctor", "-o", format, "--config", path}, &out, &out); code != tc.code {
				t.Errorf("%s, format %q: exit code %d, want %d", name, format, code, tc.code)
			}
			for _, f := range tc.findings {
				if !strings.Contains(out.String(), f.Pod) {
					t.Fatalf("%s, format %q: %s is missing in:\n%s", name, format, f.Pod, out.String())
				}
			}
			if format == "" && !strings.Contains(out.String(), tc.words) {
				t.Errorf("%s: %s", name, out.String())
			}
		}
	}
}

func TestDoctorThatCannotTell(t *testing.T) {
	path := storeOnly(t)
	for _, args := range [][]string{{"-o", "xml"}, {"more"}, {"--config", path + "x"}} {
		var out strings.Builder
		if code := command(append([]string{"doctor"}, args...), &out, &out); code != cannotTell || out.Len() == 0 {
			t.Errorf("%v: exit code %d, %q", args, code, out.String())
		}
	}
}

// BenchmarkDoctorFromTheStore is doctor on a node with 110 pods whose agent does not run.
func BenchmarkDoctorFromTheStore(b *testing.B) {
	path := storeOnly(b)
	store, err := snapshot.Open(filepath.Join(filepath.Dir(path), "state"), logr.Discard())
	if err != nil {
		b.Fatal(err)
	}
	var pods []snapshot.Object
	for i := range 110 {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("web-", i), UID: types.UID(fmt.Sprint("uid-", i))}}
		pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "web:1"}}
		raw, err := json.Marshal(pod)
		if err != nil {
			b.Fatal(err)
		}
		pods = append(pods, snapshot.Object{Namespace: "shop", Name: pod.Name, UID: pod.UID, ResourceVersion: "1", Raw: raw})
	}
	if err := store.Objects().Sync(snapshot.Scope{Resource: snapshot.Pods}, "1", pods); err != nil {
		b.Fatal(err)
	}
	if err := store.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if code := command([]string{"doctor", "-o", "json", "--config", path}, io.Discard, io.Discard); code != 1 {
			b.Fatalf("exit code %d", code)
		}
	}
}
