// Package rawobject reads and changes parts of API objects and leaves the rest as it came,
// byte for byte: fields of newer servers stay, whatever is next to them.
package rawobject

import (
	"encoding/json"
	"fmt"
)

// Fields are an object, or a part of one, whose values are left as they are.
type Fields map[string]json.RawMessage

// Decode fails on what is no JSON object. Null is an empty one.
func Decode(raw []byte) (Fields, error) {
	var f Fields
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, fmt.Errorf("not a JSON object: %w", err)
	}
	if f == nil {
		f = Fields{}
	}
	return f, nil
}

// Of is Decode for what may be absent or something else: then it is empty.
func Of(raw []byte) Fields {
	f, err := Decode(raw)
	if err != nil {
		return Fields{}
	}
	return f
}

// Part is the object in a field, empty if there is none.
func (f Fields) Part(name string) Fields { return Of(f[name]) }

// Text is the string in a field, empty if there is none.
func (f Fields) Text(name string) string {
	var text string
	_ = json.Unmarshal(f[name], &text) // another type is no text
	return text
}

// List are the objects in a field, none if it is something else.
func (f Fields) List(name string) []Fields {
	var list []Fields
	_ = json.Unmarshal(f[name], &list) // absent: none
	return list
}

// Set puts a value, which must be JSON by its type.
func (f Fields) Set(name string, value any) { f[name], _ = json.Marshal(value) }

// Encode cannot fail: the values were JSON.
func (f Fields) Encode() json.RawMessage {
	raw, _ := json.Marshal(f)
	return raw
}
