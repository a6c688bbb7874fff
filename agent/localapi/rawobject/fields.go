// Package rawobject reads and changes parts of API objects and leaves the rest as it came,
// byte for byte: fields of newer servers stay, whatever is next to them.
package rawobject

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Fields are an object, or a part of one, whose values are left as they are. They share the
// bytes that they were decoded from, which must not change.
type Fields map[string]json.RawMessage

// Decode fails on what is no JSON object. Null is an empty one.
func Decode(raw []byte) (Fields, error) {
	f, ok := fieldsOf(raw)
	if ok {
		return f, nil
	}
	f = nil
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
	text, ok := textOf(f[name])
	if ok {
		return text
	}
	_ = json.Unmarshal(f[name], &text) // another type is no text
	return text
}

// List are the objects in a field, none if it is something else.
func (f Fields) List(name string) []Fields {
	list, ok := listOf(f[name])
	if ok {
		return list
	}
	list = nil
	_ = json.Unmarshal(f[name], &list) // absent: none
	return list
}

// Set puts a value, which must be JSON by its type.
func (f Fields) Set(name string, value any) {
	switch value := value.(type) {
	case Fields:
		f[name] = value.Encode()
	case []Fields:
		f[name] = encodeList(value)
	default:
		f[name], _ = json.Marshal(value)
	}
}

// Encode cannot fail: the values were JSON. They stay as they are.
func (f Fields) Encode() json.RawMessage { return f.appendTo(make([]byte, 0, f.size())) }

func (f Fields) size() int {
	size := len("{}")
	for name, value := range f {
		size += len(name) + len(value) + len(`"":null,`)
	}
	return size
}

// appendTo has the fields in the order of their names, as encoding/json has them.
func (f Fields) appendTo(out []byte) []byte {
	if f == nil {
		return append(out, "null"...)
	}
	out = append(out, '{')
	for i, name := range slices.Sorted(maps.Keys(f)) {
		if i > 0 {
			out = append(out, ',')
		}
		quoted, _ := json.Marshal(name)
		out = append(append(out, quoted...), ':')
		if value := f[name]; value != nil {
			out = append(out, value...)
		} else {
			out = append(out, "null"...)
		}
	}
	return append(out, '}')
}

func encodeList(list []Fields) json.RawMessage {
	if list == nil {
		return json.RawMessage("null")
	}
	size := len("[]")
	for _, f := range list {
		size += f.size() + len(",")
	}
	out := append(make([]byte, 0, size), '[')
	for i, f := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = f.appendTo(out)
	}
	return append(out, ']')
}
