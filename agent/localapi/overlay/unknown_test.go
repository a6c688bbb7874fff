package overlay

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"rekindle.edge/agent/localapi/rawobject/sow"
)

const (
	richPod = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"default","uid":"u","resourceVersion":"7","labels":{"a":"b"},"ownerReferences":[{"uid":"o"}]},
		"spec":{"nodeName":"n","containers":[{"name":"c","ports":[{"containerPort":80}],"env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"x"}}}]}],"tolerations":[{"key":"k"}]},
		"status":{"phase":"Running","podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"}],"hostIPs":[{"ip":"1.2.3.4"}],
			"conditions":[{"type":"Ready","status":"False"},{"type":"example.com/gate","status":"True"}],
			"containerStatuses":[{"name":"c","state":{"running":{"startedAt":null}},"resources":{"x":{}}}],
			"resourceClaimStatuses":[{"name":"r"}],"newList":[{"name":"x"},{"name":"y"}],"newObject":{"a":{"b":{}}}}}`
	richNode = `{"kind":"Node","apiVersion":"v1","metadata":{"name":"n","uid":"u","resourceVersion":"7","labels":{"a":"b"}},
		"spec":{"podCIDR":"x","taints":[{"key":"k","effect":"NoExecute"}]},
		"status":{"conditions":[{"type":"Ready","status":"Unknown"},{"type":"NetworkUnavailable","status":"False"}],"addresses":[{"type":"InternalIP","address":"1.2.3.4"}],
			"nodeInfo":{"kubeletVersion":"v1"},"volumesAttached":[{"name":"v"}],"images":[{"names":["a"]}],"runtimeHandlers":[{"name":"runc","features":{}}],"newList":[{"name":"x"}]}}`
)

// TestUnknownFieldsSurviveWrites: whatever kubelet writes, of what it does not name nothing
// is lost, at no level. Kubelet sends lists without merge keys whole: there the API server
// loses what kubelet does not know, and so does the node.
func TestUnknownFieldsSurviveWrites(t *testing.T) {
	const strategic, merge, jsonPatch = string(types.StrategicMergePatchType), string(types.MergePatchType), string(types.JSONPatchType)
	cases := map[string]struct {
		resource, kind, patch string
		replaced              []string
	}{
		"a condition, by strategic merge": {
			resource: "pods", kind: strategic,
			patch: `{"status":{"$setElementOrder/conditions":[{"type":"Ready"},{"type":"example.com/gate"}],"conditions":[{"type":"Ready","status":"True"}]}}`,
		},
		"an address, by strategic merge": {
			resource: "pods", kind: strategic,
			patch:    `{"status":{"podIP":"10.0.0.2","$setElementOrder/podIPs":[{"ip":"10.0.0.2"}],"podIPs":[{"ip":"10.0.0.2"},{"$patch":"delete","ip":"10.0.0.1"}]}}`,
			replaced: []string{".status.podIPs[0]"},
		},
		"container statuses, whole": {
			resource: "pods", kind: strategic,
			patch:    `{"status":{"containerStatuses":[{"name":"c","ready":true}]}}`,
			replaced: []string{".status.containerStatuses"},
		},
		"an object that the agent does not know": {
			resource: "pods", kind: strategic, patch: `{"status":{"newObject":{"a":{"c":1}}}}`,
		},
		"a list that the agent does not know": {
			resource: "pods", kind: strategic, patch: `{"status":{"newList":[{"name":"z"}]}}`, replaced: []string{".status.newList"},
		},
		"a phase, by merge patch":      {resource: "pods", kind: merge, patch: `{"status":{"phase":"Failed","newObject":{"a":{"c":1}}}}`},
		"a phase, by JSON patch":       {resource: "pods", kind: jsonPatch, patch: `[{"op":"replace","path":"/status/phase","value":"Failed"}]`},
		"the node's own ready":         {resource: "nodes", kind: strategic, patch: `{"status":{"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":"2026-01-01T00:00:00Z"}]}}`},
		"the node's address":           {resource: "nodes", kind: strategic, patch: `{"status":{"addresses":[{"type":"InternalIP","address":"5.6.7.8"}]}}`},
		"the node's version":           {resource: "nodes", kind: strategic, patch: `{"status":{"nodeInfo":{"kubeletVersion":"v2"}}}`},
		"the node's label, by a merge": {resource: "nodes", kind: merge, patch: `{"metadata":{"labels":{"c":"d"}}}`},
	}
	rich := map[string]string{"pods": richPod, "nodes": richNode}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := sow.Sow(t, rich[tc.resource], "labels", "capacity")
			after, err := Patch(tc.resource, tc.kind, before, []byte(tc.patch))
			if err != nil {
				t.Fatal(err)
			}
			if lost := sow.Lost(t, before, after, tc.replaced...); len(lost) > 0 {
				t.Errorf("lost by the patch: %v", lost)
			}
			entry, err := EntryOf(after, "boot")
			if err != nil {
				t.Fatal(err)
			}
			served, err := With(before, entry.Status, "8")
			if err != nil {
				t.Fatal(err)
			}
			if lost := sow.Lost(t, before, served, tc.replaced...); len(lost) > 0 {
				t.Errorf("lost in what is served: %v", lost)
			}
		})
	}
}

// TestUnknownFieldsSurviveTheHandover: what the patch that is sent makes of the live object.
func TestUnknownFieldsSurviveTheHandover(t *testing.T) {
	for resource, rich := range map[string]string{"pods": richPod, "nodes": richNode} {
		t.Run(resource, func(t *testing.T) {
			live := sow.Sow(t, rich, "labels", "capacity")
			written, err := Patch(resource, string(types.StrategicMergePatchType), live, []byte(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`))
			if err != nil {
				t.Fatal(err)
			}
			entry, err := EntryOf(written, "boot")
			if err != nil {
				t.Fatal(err)
			}
			p, err := planHandover(resource, live, entry)
			if err != nil || p.patch == nil {
				t.Fatalf("%v, %s", err, p.why)
			}
			after, err := Patch(resource, string(types.MergePatchType), live, p.patch)
			if err != nil {
				t.Fatal(err)
			}
			if lost := sow.Lost(t, live, after); len(lost) > 0 {
				t.Errorf("lost upstream: %v", lost)
			}
			object, err := objectOf(live)
			if err != nil {
				t.Fatal(err)
			}
			versioned, err := WithVersion(object.Raw, "9")
			if err != nil {
				t.Fatal(err)
			}
			if lost := sow.Lost(t, live, versioned); len(lost) > 0 {
				t.Errorf("lost when it is taken over: %v", lost)
			}
		})
	}
}

func TestUnknownFieldsSurviveInSlices(t *testing.T) {
	slice := sow.Sow(t, `{"addressType":"IPv4","metadata":{"name":"s"},"ports":[{"port":80}],
		"endpoints":[{"addresses":["10.0.0.1"],"conditions":{"ready":true},"targetRef":{"kind":"Pod","name":"web","namespace":"default","uid":"u"},"hints":{"forZones":[{"name":"z"}]}}]}`)
	status := json.RawMessage(`{"podIPs":[{"ip":"10.0.0.9"}],"conditions":[{"type":"Ready","status":"True"}]}`)
	after := Slice(slice, func(string, string, types.UID) (json.RawMessage, bool) { return status, true })
	if string(after) == string(slice) {
		t.Fatal("nothing was changed")
	}
	if lost := sow.Lost(t, slice, after); len(lost) > 0 {
		t.Errorf("lost: %v", lost)
	}
}
