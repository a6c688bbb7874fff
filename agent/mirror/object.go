package mirror

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"rekindle.edge/agent/snapshot"
)

// header is what must be known of every object.
type header struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Namespace       string    `json:"namespace"`
		Name            string    `json:"name"`
		UID             types.UID `json:"uid"`
		ResourceVersion string    `json:"resourceVersion"`
	} `json:"metadata"`
}

// object takes an API object as the server sent it. Kind and version are those of its list:
// servers leave them out of the items of a list, and who reads one object needs them.
func object(raw []byte, apiVersion, kind string) (snapshot.Object, error) {
	var h header
	if err := json.Unmarshal(raw, &h); err != nil {
		return snapshot.Object{}, fmt.Errorf("an object that is not JSON: %w", err)
	}
	if h.Metadata.Name == "" {
		return snapshot.Object{}, fmt.Errorf("an object of kind %q without a name", h.Kind)
	}
	raw = cutMember(raw, "metadata", "managedFields")
	if h.Kind == "" && h.APIVersion == "" {
		raw = withKind(raw, apiVersion, kind)
	}
	return snapshot.Object{
		Namespace: h.Metadata.Namespace, Name: h.Metadata.Name, UID: h.Metadata.UID,
		ResourceVersion: h.Metadata.ResourceVersion, Raw: raw,
	}, nil
}

// withKind puts kind and version in front of the other members of an object.
func withKind(raw []byte, apiVersion, kind string) []byte {
	i := skipSpace(raw, 0)
	head, _ := json.Marshal(struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
	}{kind, apiVersion})
	out := make([]byte, 0, len(head)+len(raw)+1)
	out = append(out, head[:len(head)-1]...)
	if next := skipSpace(raw, i+1); next < len(raw) && raw[next] != '}' {
		out = append(out, ',')
	}
	return append(out, raw[i+1:]...)
}
