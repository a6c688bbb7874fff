package overlay

import (
	"encoding/json"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"rekindle.edge/agent/localapi/rawobject"
)

// plan is what to do about one entry, seen the live object.
type plan struct {
	// patch, a merge patch of the status, is to be sent; nil: nothing is.
	patch []byte
	// why nothing is sent.
	why string
}

// planHandover compares an entry with the live object. The patch holds the live object's
// UID and version, so it is refused if the object is not that one any more.
func planHandover(resource string, live []byte, entry Entry) (plan, error) {
	object, err := rawobject.Decode(live)
	if err != nil {
		return plan{}, err
	}
	metadata, status := object.Part("metadata"), object.Part("status")
	wanted, err := rawobject.Decode(entry.Status)
	if err != nil {
		return plan{}, err
	}
	if uid := metadata.Text("uid"); uid != string(entry.UID) {
		return plan{why: "the object was replaced by another of the same name"}, nil
	}
	if resource == "pods" && terminal(status) && !terminal(wanted) {
		return plan{why: fmt.Sprintf("the pod has ended meanwhile as %s", status.Text("phase"))}, nil
	}
	merged := merge(resource, status, wanted).Encode()
	if same(object["status"], merged) {
		return plan{why: "the API server has it already"}, nil
	}
	before := object["status"]
	if before == nil {
		before = json.RawMessage("{}")
	}
	change, err := jsonpatch.CreateMergePatch(before, merged)
	if err != nil {
		return plan{}, err
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": entry.UID, "resourceVersion": metadata.Text("resourceVersion")},
		"status":   json.RawMessage(change),
	})
	return plan{patch: patch}, err
}

func terminal(status rawobject.Fields) bool {
	phase := status.Text("phase")
	return phase == "Succeeded" || phase == "Failed"
}
