package overlay

import (
	"bytes"
	"encoding/json"
	"maps"

	"rekindle.edge/agent/localapi/rawobject"
)

// owner says which parts of a status are kubelet's. The rest is of the API server, of
// controllers, or of others on the node, and the live value stands.
type owner struct {
	// foreign fields are not kubelet's.
	foreign []string
	// conditions that are kubelet's.
	conditions map[string]bool
	// united are maps to which others add keys.
	united []string
}

var owners = map[string]owner{
	"pods": {
		foreign: []string{"nominatedNodeName", "resourceClaimStatuses", "extendedResourceClaimStatus"},
		conditions: map[string]bool{
			"PodScheduled": true, "Ready": true, "ContainersReady": true, "Initialized": true,
			"PodReadyToStartContainers": true, "PodResizePending": true, "PodResizeInProgress": true,
			// Also set by others; kubelet's is worth telling, and nobody's is dropped.
			"DisruptionTarget": true,
		},
	},
	"nodes": {
		foreign:    []string{"volumesAttached", "phase"},
		conditions: map[string]bool{"Ready": true, "MemoryPressure": true, "DiskPressure": true, "PIDPressure": true},
		united:     []string{"capacity", "allocatable"},
	},
}

// merge puts kubelet's part of a status over the live one.
func merge(resource string, live, wanted rawobject.Fields) rawobject.Fields {
	own := owners[resource]
	merged := maps.Clone(wanted)
	for _, name := range own.foreign {
		delete(merged, name)
		if value, ok := live[name]; ok {
			merged[name] = value
		}
	}
	for _, name := range own.united {
		values := live.Part(name)
		maps.Copy(values, wanted.Part(name))
		if len(values) > 0 {
			merged[name] = values.Encode()
		}
	}
	if conditions := own.merge(conditionsOf(live), conditionsOf(wanted)); len(conditions) > 0 {
		merged["conditions"], _ = json.Marshal(conditions)
	}
	return merged
}

func conditionsOf(status rawobject.Fields) []rawobject.Fields { return status.List("conditions") }

// merge keeps the live order; kubelet's new conditions come last.
func (o owner) merge(live, wanted []rawobject.Fields) []rawobject.Fields {
	mine := map[string]rawobject.Fields{}
	for _, c := range wanted {
		if o.conditions[c.Text("type")] {
			mine[c.Text("type")] = c
		}
	}
	var merged []rawobject.Fields
	for _, c := range live {
		kind := c.Text("type")
		if replacement, ok := mine[kind]; ok {
			c = replacement
			delete(mine, kind)
		}
		merged = append(merged, c)
	}
	for _, c := range wanted {
		if _, left := mine[c.Text("type")]; left {
			merged = append(merged, c)
		}
	}
	return merged
}

// same compares JSON by content.
func same(a, b json.RawMessage) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	one, _ := json.Marshal(x)
	other, _ := json.Marshal(y)
	return bytes.Equal(one, other)
}
