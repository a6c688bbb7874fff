package doctor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/api/v1alpha1"
)

func TestAReportInWords(t *testing.T) {
	finding := v1alpha1.Finding{Reason: "ImageMissing", Severity: v1alpha1.SeverityBlocksPod, Pod: "shop/web", Object: "web:1", Message: "Pull it."}
	until := metav1.NewTime(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC))
	cases := map[string]struct {
		report Report
		code   int
		want   []string
		not    string
	}{
		"ready, with a forecast": {
			report: Report{Ready: metav1.ConditionTrue, Source: FromAgent, TargetSeconds: 30, Forecast: &v1alpha1.Forecast{TotalMilliseconds: 7140, BasedOn: 3, WithinTarget: v1alpha1.TruthTrue, SlowestStage: "db"}},
			want:   []string{"would come back", "7.1s", "within the target of 30 s, by 3 restarts", "stage db", "Nothing is known"}, not: "copy of its store",
		},
		"ready, and slow": {
			report: Report{Ready: metav1.ConditionTrue, TargetSeconds: 5, Forecast: &v1alpha1.Forecast{TotalMilliseconds: 7140, BasedOn: 1, WithinTarget: v1alpha1.TruthFalse}},
			want:   []string{"LONGER than the target of 5 s, by 1 restart of"}, not: "stage",
		},
		"ready, without a history": {
			report: Report{Ready: metav1.ConditionTrue, Forecast: &v1alpha1.Forecast{WithinTarget: v1alpha1.TruthUnknown}},
			want:   []string{"No forecast: no restart of this node was measured"}, not: "0s",
		},
		"not ready": {
			report: Report{Ready: metav1.ConditionFalse, Findings: []v1alpha1.Finding{finding}, Source: FromStore, SurvivesOfflineUntil: &until}, code: 1,
			want: []string{"would NOT come back", "one pod", "ImageMissing  shop/web  web:1", "Pull it.", "No forecast", "2026-12-01T00:00:00Z", "copy of its store"}, not: "whole node",
		},
		"not told": {report: Report{Ready: metav1.ConditionUnknown, Message: "why"}, code: 2, want: []string{"cannot be told. why"}},
		"empty":    {code: 2, want: []string{"cannot be told"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := tc.report.Print(&out); err != nil {
				t.Fatal(err)
			}
			for _, want := range tc.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is missing in:\n%s", want, out.String())
				}
			}
			if tc.not != "" && strings.Contains(out.String(), tc.not) {
				t.Errorf("%q is in:\n%s", tc.not, out.String())
			}
			if code := tc.report.ExitCode(); code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
		})
	}
}

func TestTheAgentAnswersRootAlone(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "run", "agent.sock")
	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		t.Fatal(err)
	}
	// An agent that was killed has left its socket.
	if err := os.WriteFile(socket, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	want := Report{Ready: metav1.ConditionFalse, Reason: "R", Findings: []v1alpha1.Finding{{Reason: "R"}}, Source: FromAgent}
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, socket, func() Report { return want }) }()
	var got Report
	var err error
	for range 100 {
		if got, err = Ask(ctx, socket); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v, answer (-want +got):\n%s", err, diff)
	}
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := Ask(t.Context(), socket); err == nil {
		t.Error("an agent that has ended answers")
	}
}

func TestACopyHasTheStoreAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"rekindle.db", "store.key", "rekindle.db.damaged-1"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "pki"), 0o700); err != nil {
		t.Fatal(err)
	}
	to, remove, err := Copy(dir, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(to)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if diff := cmp.Diff([]string{"rekindle.db", "store.key"}, names); err != nil || diff != "" {
		t.Errorf("error %v, files (-want +got):\n%s", err, diff)
	}
	if info, _ := os.Stat(to); info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v", info.Mode())
	}
	remove()
	if _, err := os.Stat(to); !os.IsNotExist(err) {
		t.Errorf("the copy is left: %v", err)
	}
	if _, _, err := Copy(filepath.Join(dir, "none"), dir); err == nil || !strings.Contains(err.Error(), "installed") {
		t.Errorf("error %v", err)
	}
}

// BenchmarkAsk is the question to a running agent, with as many findings as pods.
func BenchmarkAsk(b *testing.B) {
	report := Report{Ready: metav1.ConditionFalse, Source: FromAgent}
	for range 110 {
		report.Findings = append(report.Findings, v1alpha1.Finding{Reason: "ImageMissing", Pod: "shop/web", Message: strings.Repeat("m", 250)})
	}
	socket := filepath.Join(b.TempDir(), "agent.sock")
	go func() { _ = Serve(b.Context(), socket, func() Report { return report }) }()
	for range 100 {
		if _, err := Ask(b.Context(), socket); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	for b.Loop() {
		if _, err := Ask(b.Context(), socket); err != nil {
			b.Fatal(err)
		}
	}
}
