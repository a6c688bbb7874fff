package served

import (
	"slices"
	"strings"

	"rekindle.edge/agent/localapi/rawobject"
)

// unready takes Ready=True from a Node. Kubelet then looks at the network every 100 ms
// until it may say Ready itself, and not every 5 s.
func unready(node rawobject.Fields) {
	status := rawobject.Of(node["status"])
	conditions := status.List("conditions")
	for _, c := range conditions {
		if c.Text("type") == "Ready" {
			c.Set("status", "Unknown")
		}
	}
	if len(conditions) > 0 {
		status.Set("conditions", conditions)
		node.Set("status", status)
	}
}

// untaint takes the taints away that the node controller puts on a node that it does not
// hear of. Kubelet would fail every pod that does not tolerate them, for good.
func untaint(node rawobject.Fields) {
	spec := rawobject.Of(node["spec"])
	taints := spec.List("taints")
	left := slices.DeleteFunc(slices.Clone(taints), func(t rawobject.Fields) bool {
		key, _ := strings.CutPrefix(t.Text("key"), "node.kubernetes.io/")
		return t.Text("effect") == "NoExecute" && (key == "unreachable" || key == "not-ready")
	})
	if len(left) == len(taints) {
		return
	}
	if len(left) == 0 {
		delete(spec, "taints")
	} else {
		spec.Set("taints", left)
	}
	node.Set("spec", spec)
}
