package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest/fake"

	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

// oldServer keeps a status without its agentVersion, as a CRD does that does not know the
// field, and counts writes.
type oldServer struct {
	object v1alpha1.NodeRecovery
	writes int
}

func (s *oldServer) client(t *testing.T) *fake.RESTClient {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return &fake.RESTClient{
		GroupVersion: v1alpha1.GroupVersion, NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(),
		Client: fake.CreateHTTPClient(func(request *http.Request) (*http.Response, error) {
			s.writes, s.object = s.writes+1, v1alpha1.NodeRecovery{}
			if err := json.NewDecoder(request.Body).Decode(&s.object); err != nil {
				return nil, err
			}
			s.object.Status.AgentVersion = ""
			data, err := json.Marshal(s.object)
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(bytes.NewReader(data))}, err
		}),
	}
}

// TestOlderCRD: fields that the server drops make no write, and the snapshot's numbers none
// before their hour is over.
func TestOlderCRD(t *testing.T) {
	server := &oldServer{object: v1alpha1.NodeRecovery{ObjectMeta: metav1.ObjectMeta{Name: "edge-1"}}}
	now := noon
	facts := Facts{AgentVersion: "v1", Snapshot: &v1alpha1.SnapshotStatus{Generation: 1, InStepTime: &metav1.Time{Time: noon.Time}}}
	reporter := Reporter{Node: "edge-1", Client: server.client(t), Facts: func() Facts { return facts }, Wall: func() time.Time { return now.Time },
		Since: func() time.Time { return noon.Time }, Adopt: func(context.Context, *snapshot.Spec) error { return nil }}
	var last kept
	steps := []struct {
		name   string
		change func()
		writes int
	}{
		{name: "the first write", change: func() {}, writes: 1},
		{name: "nothing has changed", change: func() {}, writes: 1},
		{name: "numbers ten minutes later", change: func() { facts.Snapshot.InStepTime = &metav1.Time{Time: noon.Add(10 * time.Minute)} }, writes: 1},
		{name: "numbers an hour later", change: func() { facts.Snapshot.InStepTime = &metav1.Time{Time: noon.Add(time.Hour)} }, writes: 2},
		{name: "numbers ten minutes after that", change: func() { facts.Snapshot.InStepTime = &metav1.Time{Time: noon.Add(70 * time.Minute)} }, writes: 2},
		{name: "a finding", change: func() { facts.Findings = []v1alpha1.Finding{{Reason: "R", Severity: v1alpha1.SeveritySlows}} }, writes: 3},
		{name: "a status that somebody else has changed", change: func() { server.object.Status.FindingsTotal = 99 }, writes: 4},
	}
	for _, step := range steps {
		step.change()
		if err := reporter.reconcile(t.Context(), server.object.DeepCopy(), &last); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if server.writes != step.writes {
			t.Fatalf("%s: %d writes, want %d", step.name, server.writes, step.writes)
		}
	}
}

// TestLostRecords: what was reported before is taken over before the first write, and a
// store that does not take it keeps the status from being written.
func TestLostRecords(t *testing.T) {
	reported := records(2)
	cases := map[string]struct {
		lost       bool
		restoreErr error
		want       []v1alpha1.Recovery
		wantWrites int
	}{
		"a store that has lost records gives the status those that it had": {lost: true, want: reported, wantWrites: 1},
		"while they cannot be taken over the status is left alone":         {lost: true, restoreErr: errors.New("disk is full"), want: reported},
		"a store that has lost none is what counts":                        {want: nil, wantWrites: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := &oldServer{object: v1alpha1.NodeRecovery{ObjectMeta: metav1.ObjectMeta{Name: "edge-1"},
				Status: v1alpha1.NodeRecoveryStatus{Recoveries: records(2)}}}
			reported[1].SlowestPods, reported[1].HeldPods, reported[1].Stages = nil, nil, nil
			for i := range reported[0].SlowestPods[1:] {
				reported[0].SlowestPods[1+i].Steps = nil
			}
			server.object.Status.Recoveries = slices.Clone(reported)
			facts := Facts{RecordsLost: tc.lost}
			reporter := Reporter{Node: "edge-1", Client: server.client(t), Facts: func() Facts { return facts }, Wall: func() time.Time { return noon.Time },
				Since: func() time.Time { return noon.Time }, Adopt: func(_ context.Context, spec *snapshot.Spec) error { return nil },
				Restore: func(_ context.Context, records []v1alpha1.Recovery) error {
					if tc.restoreErr == nil {
						facts.Recoveries, facts.RecordsLost = records, false
					}
					return tc.restoreErr
				}}
			if err := reporter.reconcile(t.Context(), server.object.DeepCopy(), &kept{}); !errors.Is(err, tc.restoreErr) {
				t.Fatalf("error %v, want %v", err, tc.restoreErr)
			}
			if diff := cmp.Diff(tc.want, server.object.Status.Recoveries); diff != "" || server.writes != tc.wantWrites {
				t.Errorf("%d writes, want %d; recoveries (-want +got):\n%s", server.writes, tc.wantWrites, diff)
			}
		})
	}
}
