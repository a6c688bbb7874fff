package snapshot

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Object is one API object as the API server sent it: JSON without managedFields. Raw is
// shared and never changed.
type Object struct {
	Namespace, Name string
	UID             types.UID
	ResourceVersion string
	Raw             []byte
}

// Scope is what one watch, or one get, covers: a collection, narrowed to a namespace and a
// name where they are set.
type Scope struct {
	Resource  schema.GroupVersionResource
	Namespace string
	Name      string
}

func (s Scope) covers(other Scope) bool {
	return s.Resource == other.Resource &&
		(s.Namespace == "" || s.Namespace == other.Namespace) && (s.Name == "" || s.Name == other.Name)
}

// EventType says what an event tells.
type EventType string

// What an event tells.
const (
	Added    EventType = "Added"
	Modified EventType = "Modified"
	// Deleted carries the last state.
	Deleted EventType = "Deleted"
	// Forgotten: the object is not followed any more, since nothing on the node refers to
	// it. It may still exist. The event carries the last state.
	Forgotten EventType = "Forgotten"
	// Reset: the line of versions is broken. Who watches must list again.
	Reset EventType = "Reset"
	// Overlaid: the overlay of an object has changed. Object has the names, and in Raw what
	// was put; nil: the overlay is gone.
	Overlaid EventType = "Overlaid"
)

// Event is one change of a collection.
type Event struct {
	Type     EventType
	Resource schema.GroupVersionResource
	Object   Object
	// Version of the collection after this event, strictly rising between resets.
	Version uint64
}

// ref names an object.
type ref struct {
	resource        schema.GroupVersionResource
	namespace, name string
}

func (r ref) scope() Scope { return Scope{r.resource, r.namespace, r.name} }

// Keys of records: group/version/resource, namespace and name, apart by zero bytes.

func resourceKey(r schema.GroupVersionResource) string {
	return r.Group + "/" + r.Version + "/" + r.Resource
}

func parseResource(key string) (schema.GroupVersionResource, error) {
	parts := strings.Split(key, "/")
	if len(parts) != 3 {
		return schema.GroupVersionResource{}, fmt.Errorf("%q is no resource", key)
	}
	return schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]}, nil
}

func (s Scope) key() string {
	return resourceKey(s.Resource) + "\x00" + s.Namespace + "\x00" + s.Name
}

func parseScope(key string) (Scope, error) {
	parts := strings.Split(key, "\x00")
	if len(parts) != 3 {
		return Scope{}, fmt.Errorf("%q is no scope", key)
	}
	resource, err := parseResource(parts[0])
	return Scope{resource, parts[1], parts[2]}, err
}

// encodeObject puts what is not in the key before the JSON, so that nothing is decoded
// when the store is loaded.
func encodeObject(o Object) []byte {
	value := make([]byte, 0, len(o.UID)+len(o.ResourceVersion)+2*binary.MaxVarintLen32+len(o.Raw))
	for _, part := range []string{string(o.UID), o.ResourceVersion} {
		value = binary.AppendUvarint(value, uint64(len(part)))
		value = append(value, part...)
	}
	return append(value, o.Raw...)
}

// decodeObject shares the value with the object.
func decodeObject(namespace, name string, value []byte) (Object, error) {
	var parts [2]string
	for i := range parts {
		length, n := binary.Uvarint(value)
		if n <= 0 || uint64(len(value)-n) < length {
			return Object{}, fmt.Errorf("object %s/%s: its head cannot be read", namespace, name)
		}
		value = value[n:]
		parts[i], value = string(value[:length]), value[length:]
	}
	return Object{Namespace: namespace, Name: name, UID: types.UID(parts[0]), ResourceVersion: parts[1], Raw: value}, nil
}

// parseVersion is 0 for a version that is no number.
func parseVersion(version string) uint64 {
	number, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0
	}
	return number
}
