package served

import (
	"encoding/json"
	"slices"
	"strings"
)

// fields are an object, or a part of one, whose values are left as they are.
type fields map[string]json.RawMessage

func decode(raw []byte) fields {
	var f fields
	if json.Unmarshal(raw, &f) != nil || f == nil {
		return fields{}
	}
	return f
}

func (f fields) text(name string) string {
	var text string
	_ = json.Unmarshal(f[name], &text) // another type is no text
	return text
}

func (f fields) list(name string) []fields {
	var list []fields
	_ = json.Unmarshal(f[name], &list) // absent: none
	return list
}

// set puts a value, which must be JSON by its type.
func (f fields) set(name string, value any) { f[name], _ = json.Marshal(value) }

// unready takes Ready=True from a Node. Kubelet then looks at the network every 100 ms
// until it may say Ready itself, and not every 5 s.
func unready(node fields) {
	status := decode(node["status"])
	conditions := status.list("conditions")
	for _, c := range conditions {
		if c.text("type") == "Ready" {
			c.set("status", "Unknown")
		}
	}
	if len(conditions) > 0 {
		status.set("conditions", conditions)
		node.set("status", status)
	}
}

// untaint takes the taints away that the node controller puts on a node that it does not
// hear of. Kubelet would fail every pod that does not tolerate them, for good.
func untaint(node fields) {
	spec := decode(node["spec"])
	taints := spec.list("taints")
	left := slices.DeleteFunc(slices.Clone(taints), func(t fields) bool {
		key, _ := strings.CutPrefix(t.text("key"), "node.kubernetes.io/")
		return t.text("effect") == "NoExecute" && (key == "unreachable" || key == "not-ready")
	})
	if len(left) == len(taints) {
		return
	}
	if len(left) == 0 {
		delete(spec, "taints")
	} else {
		spec.set("taints", left)
	}
	node.set("spec", spec)
}
