package table

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// That rows are the API server's is shown against one in test/integration/localapi; here
// are those that take more to bring about.

func TestPodStates(t *testing.T) {
	container := func(state string) string {
		return `"spec":{"containers":[{"name":"c"}]},"status":{"phase":"Running","conditions":[{"type":"Initialized","status":"True"}],"containerStatuses":[{"name":"c",` + state + `}]}`
	}
	cases := map[string]struct{ pod, ready, state string }{
		"killed by a signal":           {pod: container(`"state":{"terminated":{"exitCode":137,"signal":9}}`), ready: "0/1", state: "Signal:9"},
		"ended with a code":            {pod: container(`"state":{"terminated":{"exitCode":3}}`), ready: "0/1", state: "ExitCode:3"},
		"being deleted":                {pod: `"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},` + container(`"ready":true,"state":{"running":{}}`), ready: "1/1", state: "Terminating"},
		"of a lost node":               {pod: `"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"status":{"phase":"Running","reason":"NodeLost"}`, ready: "0/0", state: "Unknown"},
		"ended, and being deleted":     {pod: `"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"status":{"phase":"Succeeded"}`, ready: "0/0", state: "Succeeded"},
		"held by a scheduling gate":    {pod: `"status":{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"SchedulingGated"}]}`, ready: "0/0", state: "SchedulingGated"},
		"waiting for an init image":    {pod: `"spec":{"initContainers":[{"name":"i"}]},"status":{"phase":"Pending","initContainerStatuses":[{"name":"i","state":{"waiting":{"reason":"ImagePullBackOff"}}}]}`, ready: "0/0", state: "Init:ImagePullBackOff"},
		"an init container has failed": {pod: `"spec":{"initContainers":[{"name":"i"}]},"status":{"phase":"Pending","initContainerStatuses":[{"name":"i","state":{"terminated":{"exitCode":1,"reason":"Error"}}}]}`, ready: "0/0", state: "Init:Error"},
		"the second init container":    {pod: `"spec":{"initContainers":[{"name":"i"},{"name":"j"}]},"status":{"phase":"Pending","initContainerStatuses":[{"name":"i","state":{"terminated":{"exitCode":0}}},{"name":"j","state":{}}]}`, ready: "0/0", state: "Init:1/2"},
		"one of two has completed": {
			pod:   `"spec":{"containers":[{"name":"a"},{"name":"b"}]},"status":{"phase":"Running","containerStatuses":[{"name":"a","state":{"terminated":{"exitCode":0,"reason":"Completed"}}},{"name":"b","ready":true,"state":{"running":{}}}]}`,
			ready: "1/2", state: "NotReady",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			row, err := For(schema.GroupResource{Resource: "pods"}).Row([]byte("{" + tc.pod + "}"))
			if err != nil {
				t.Fatal(err)
			}
			if row.Cells[1] != tc.ready || row.Cells[2] != tc.state {
				t.Errorf("%v %v, want %s %s", row.Cells[1], row.Cells[2], tc.ready, tc.state)
			}
		})
	}
}

func TestCustom(t *testing.T) {
	const crd = `{"spec":{"versions":[{"name":"v1","additionalPrinterColumns":[
		{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"},
		{"name":"Nodes","type":"integer","jsonPath":".status.nodes"},{"name":"Share","type":"number","jsonPath":".status.share"},
		{"name":"On","type":"boolean","jsonPath":".spec.on"},{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"},
		{"name":"Wide","type":"string","priority":1,"jsonPath":".spec.list"}]},{"name":"v2"}]}}`
	created := time.Now().Add(-50 * time.Hour).UTC().Format(time.RFC3339)
	cases := map[string]struct {
		object string
		want   []any
	}{
		"all are there": {
			object: fmt.Sprintf(`{"metadata":{"name":"x","creationTimestamp":%q},"spec":{"on":true,"list":["a"]},"status":{"nodes":3,"share":0.5,"conditions":[{"type":"Ready","status":"True"}]}}`, created),
			want:   []any{"x", "True", int64(3), 0.5, true, "2d2h", `["a"]`},
		},
		"none is":                   {object: `{"metadata":{"name":"x"}}`, want: []any{"x", nil, nil, nil, nil, nil, nil}},
		"of another type than said": {object: `{"metadata":{"name":"x","creationTimestamp":"soon"},"spec":{"on":"yes"},"status":{"nodes":"3"}}`, want: []any{"x", nil, nil, nil, nil, "<invalid>", nil}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			printer, err := Custom([]byte(crd), "v1")
			if err != nil {
				t.Fatal(err)
			}
			row, err := printer.Row([]byte(tc.object))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, row.Cells); diff != "" {
				t.Error(diff)
			}
			if len(printer.Columns()) != len(row.Cells) {
				t.Errorf("%d columns and %d cells", len(printer.Columns()), len(row.Cells))
			}
		})
	}
	if printer, err := Custom([]byte(crd), "v2"); err != nil || !printer.Plain() {
		t.Errorf("a version without columns: %v", err)
	}
	if _, err := Custom([]byte(`{"spec":{"versions":[{"name":"v1","additionalPrinterColumns":[{"jsonPath":"["}]}]}}`), "v1"); err == nil {
		t.Error("a path that is none is taken")
	}
}
