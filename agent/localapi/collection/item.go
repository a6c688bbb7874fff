package collection

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"rekindle.edge/agent/localapi/rawobject"
)

// Key names an object within its collection.
type Key struct{ Namespace, Name string }

// Compare orders as the API server lists: by the path in its store.
func Compare(a, b Key) int {
	if a.Namespace == b.Namespace {
		return strings.Compare(a.Name, b.Name)
	}
	// "a-b/" sorts before "a/", since '-' is below '/'.
	return strings.Compare(a.Namespace+"/", b.Namespace+"/")
}

// fieldsKept is more than any kind is usually selected by.
const fieldsKept = 16

// Item is an object as it is served. What it holds never changes.
type Item struct {
	Namespace, Name string
	UID             types.UID
	ResourceVersion string
	Raw             []byte

	once   sync.Once
	head   head
	mu     sync.Mutex
	fields map[string]string
}

// head is the part of an object that selection needs.
type head struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
}

// Key of the object.
func (i *Item) Key() Key { return Key{i.Namespace, i.Name} }

func (i *Item) decodeHead() *head {
	i.once.Do(func() { _ = json.Unmarshal(i.Raw, &i.head) })
	return &i.head
}

// Kind is what the object says of itself; it may be empty.
func (i *Item) Kind() metav1.TypeMeta { return i.decodeHead().TypeMeta }

// Labels of the object.
func (i *Item) Labels() labels.Set { return i.decodeHead().Metadata.Labels }

// Field is the value at a dotted path, as field selectors compare it; empty if there is
// none.
func (i *Item) Field(path string) string {
	switch path {
	case "metadata.name":
		return i.Name
	case "metadata.namespace":
		return i.Namespace
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if value, ok := i.fields[path]; ok {
		return value
	}
	value := i.lookUp(strings.Split(path, "."))
	if i.fields == nil {
		i.fields = map[string]string{}
	}
	// Kinds of others may be selected by fields without end.
	if len(i.fields) < fieldsKept {
		i.fields[path] = value
	}
	return value
}

func (i *Item) lookUp(path []string) string {
	raw := json.RawMessage(i.Raw)
	for _, name := range path {
		raw = rawobject.Of(raw)[name]
	}
	var value any
	if json.Unmarshal(raw, &value) != nil || value == nil {
		return ""
	}
	switch value.(type) {
	case map[string]any, []any:
		return ""
	}
	return fmt.Sprint(value)
}
