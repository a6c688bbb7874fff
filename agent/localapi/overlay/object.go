package overlay

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/types"

	"rekindle.edge/agent/localapi/rawobject"
)

// With is an object with another status and version.
func With(object []byte, status json.RawMessage, version string) ([]byte, error) {
	f, err := rawobject.Decode(object)
	if err != nil {
		return nil, err
	}
	f["status"] = status
	setVersion(f, version)
	return f.Encode(), nil
}

// WithVersion is an object with another version.
func WithVersion(object []byte, version string) ([]byte, error) {
	f, err := rawobject.Decode(object)
	if err != nil {
		return nil, err
	}
	setVersion(f, version)
	return f.Encode(), nil
}

func setVersion(f rawobject.Fields, version string) {
	metadata := f.Part("metadata")
	metadata["resourceVersion"], _ = json.Marshal(version)
	f["metadata"] = metadata.Encode()
}

// Entry is what is kept of one object.
type Entry struct {
	// UID of the object that was written to.
	UID types.UID `json:"uid"`
	// BootID is the boot in which it was written last.
	BootID string `json:"bootID"`
	// Status as kubelet wants it, whole.
	Status json.RawMessage `json:"status"`
}

// EntryOf takes the status out of an object.
func EntryOf(object []byte, bootID string) (Entry, error) {
	f, err := rawobject.Decode(object)
	if err != nil {
		return Entry{}, err
	}
	status := f["status"]
	if status == nil {
		status = json.RawMessage("{}")
	}
	return Entry{UID: types.UID(f.Part("metadata").Text("uid")), BootID: bootID, Status: status}, nil
}
