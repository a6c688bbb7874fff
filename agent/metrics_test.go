package main

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"rekindle.edge/api/v1alpha1"
)

func TestExposition(t *testing.T) {
	cases := map[string]struct {
		c    nodeCollector
		want []string
	}{
		"a node that came back cut off": {
			c: nodeCollector{
				trusted: func() (bool, string) { return true, "" }, linked: func() bool { return false },
				forecast: func() *v1alpha1.Forecast { return &v1alpha1.Forecast{TotalMilliseconds: 6500, BasedOn: 1} },
				last: func() *v1alpha1.Recovery {
					return &v1alpha1.Recovery{Result: v1alpha1.RecoveryComplete, ConnectivityAtStart: v1alpha1.ConnectivityOffline, TotalMilliseconds: ptr.To[int64](7250)}
				},
			},
			want: []string{
				"rekindle_api_server_answers 0", "rekindle_forecast_seconds 6.5", `rekindle_last_recovery_complete{connectivity="offline"} 1`,
				`rekindle_last_recovery_seconds{connectivity="offline"} 7.25`, "rekindle_pod_list_trusted 1",
			},
		},
		"an incomplete recovery has no time": {
			c: nodeCollector{
				trusted: func() (bool, string) { return true, "" }, linked: func() bool { return true },
				last: func() *v1alpha1.Recovery {
					return &v1alpha1.Recovery{Result: v1alpha1.RecoveryIncomplete, ConnectivityAtStart: v1alpha1.ConnectivityOnline}
				},
			},
			want: []string{"rekindle_api_server_answers 1", `rekindle_last_recovery_complete{connectivity="online"} 0`, "rekindle_pod_list_trusted 1"},
		},
		"a node that would not come back": {
			c: nodeCollector{
				trusted: func() (bool, string) { return true, "" }, linked: func() bool { return true },
				last: func() *v1alpha1.Recovery { return nil },
				verdict: func() (metav1.Condition, map[v1alpha1.Severity]int) {
					return metav1.Condition{Status: metav1.ConditionFalse}, map[v1alpha1.Severity]int{v1alpha1.SeverityBlocksPod: 2}
				},
			},
			want: []string{"rekindle_api_server_answers 1", `rekindle_findings{severity="BlocksPod"} 2`, "rekindle_pod_list_trusted 1", "rekindle_restart_ready 0"},
		},
		"a node of which it cannot be told": {
			c: nodeCollector{
				trusted: func() (bool, string) { return true, "" }, linked: func() bool { return true },
				last: func() *v1alpha1.Recovery { return nil },
				verdict: func() (metav1.Condition, map[v1alpha1.Severity]int) {
					return metav1.Condition{Status: metav1.ConditionUnknown}, map[v1alpha1.Severity]int{v1alpha1.SeveritySlows: 0}
				},
			},
			want: []string{"rekindle_api_server_answers 1", `rekindle_findings{severity="Slows"} 0`, "rekindle_pod_list_trusted 1"},
		},
		"a list that is held back, and no record": {
			c: nodeCollector{
				trusted: func() (bool, string) { return false, "damaged" }, linked: func() bool { return true },
				last: func() *v1alpha1.Recovery { return nil },
			},
			want: []string{"rekindle_api_server_answers 1", "rekindle_pod_list_trusted 0"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.c.verdict == nil {
				tc.c.verdict = func() (metav1.Condition, map[v1alpha1.Severity]int) { return metav1.Condition{}, nil }
			}
			if tc.c.forecast == nil {
				tc.c.forecast = func() *v1alpha1.Forecast { return &v1alpha1.Forecast{} } // no history
			}
			_, handler, err := exposition(tc.c)
			if err != nil {
				t.Fatal(err)
			}
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
			body, err := io.ReadAll(answer.Body)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for line := range strings.Lines(string(body)) {
				if strings.HasPrefix(line, "rekindle_") {
					got = append(got, strings.TrimSpace(line))
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if !strings.Contains(string(body), "process_resident_memory_bytes") {
				t.Error("the process is not measured")
			}
		})
	}
}
