package served

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"rekindle.edge/agent/localapi/collection"
	"rekindle.edge/agent/localapi/rawobject/sow"
	"rekindle.edge/agent/snapshot"
)

// TestUnknownFieldsSurviveTheEdits: at every level, also within what is changed.
func TestUnknownFieldsSurviveTheEdits(t *testing.T) {
	cases := map[string]struct {
		resource schema.GroupVersionResource
		raw      string
		gone     []string
	}{
		"node": {
			resource: snapshot.Nodes,
			raw: `{"metadata":{"name":"n"},"spec":{"podCIDR":"x","taints":[{"key":"node.kubernetes.io/unreachable","effect":"NoExecute"},{"key":"own","effect":"NoExecute"}]},
				"status":{"nodeInfo":{},"conditions":[{"type":"Ready","status":"True"},{"type":"DiskPressure","status":"False"}]}}`,
			// The taint is taken away, as a whole.
			gone: []string{".spec.taints[0]"},
		},
		"pod": {
			resource: snapshot.Pods,
			raw: `{"metadata":{"name":"p"},"spec":{"volumes":[{"name":"v","emptyDir":{}}],
				"initContainers":[{"name":"i","image":"here","imagePullPolicy":"Always"}],
				"containers":[{"name":"c","image":"here","imagePullPolicy":"Always","readinessProbe":{"httpGet":{"port":80,"httpHeaders":[{"name":"h"}]},"periodSeconds":10,"timeoutSeconds":1}},
					{"name":"d","image":"here","imagePullPolicy":"IfNotPresent"}]},"status":{"conditions":[{"type":"Ready"}]}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e, _ := edits()
			before := sow.Sow(t, tc.raw)
			after := e.For(tc.resource, true)(&collection.Item{UID: "old", Raw: before})
			if string(after) == string(before) {
				t.Fatal("nothing was changed")
			}
			if lost := sow.Lost(t, before, after, tc.gone...); len(lost) > 0 {
				t.Errorf("lost: %v", lost)
			}
		})
	}
}
