package overlay

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// fields are an object, or a part of one, whose values are left as they are.
type fields map[string]json.RawMessage

func decode(raw []byte) (fields, error) {
	var f fields
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, fmt.Errorf("not a JSON object: %w", err)
	}
	if f == nil {
		f = fields{}
	}
	return f, nil
}

func (f fields) part(name string) fields {
	part, err := decode(f[name])
	if err != nil {
		return fields{}
	}
	return part
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

// encode cannot fail: the values were JSON.
func (f fields) encode() json.RawMessage {
	raw, _ := json.Marshal(f)
	return raw
}

// With is an object with another status and version.
func With(object []byte, status json.RawMessage, version string) ([]byte, error) {
	f, err := decode(object)
	if err != nil {
		return nil, err
	}
	f["status"] = status
	f.setVersion(version)
	return f.encode(), nil
}

// WithVersion is an object with another version.
func WithVersion(object []byte, version string) ([]byte, error) {
	f, err := decode(object)
	if err != nil {
		return nil, err
	}
	f.setVersion(version)
	return f.encode(), nil
}

func (f fields) setVersion(version string) {
	metadata := f.part("metadata")
	metadata["resourceVersion"], _ = json.Marshal(version)
	f["metadata"] = metadata.encode()
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
	f, err := decode(object)
	if err != nil {
		return Entry{}, err
	}
	status := f["status"]
	if status == nil {
		status = json.RawMessage("{}")
	}
	return Entry{UID: types.UID(f.part("metadata").text("uid")), BootID: bootID, Status: status}, nil
}
