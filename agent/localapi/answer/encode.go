package answer

import (
	"bytes"
	"encoding/json"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/agent/localapi/collection"
	"rekindle.edge/agent/localapi/table"
)

// encoder writes objects of one collection in the form that was asked for.
type encoder struct {
	form form
	kind metav1.TypeMeta
	// edit is what is changed in the served copy; nil: nothing.
	edit func(*collection.Item) []byte
	// printer makes table rows, including part of each object.
	printer *table.Printer
	include metav1.IncludeObjectPolicy
}

func (e *encoder) raw(item *collection.Item) []byte {
	if e.edit == nil {
		return item.Raw
	}
	return e.edit(item)
}

// object writes one object, as a get or an event has it. Columns are left out of a table
// that is not the first.
func (e *encoder) object(buffer *bytes.Buffer, item *collection.Item, columns bool) error {
	raw := e.raw(item)
	switch e.form {
	case formMetadata:
		return e.metadata(buffer, raw)
	case formTable:
		if err := e.table(buffer, []*collection.Item{item}, metav1.ListMeta{ResourceVersion: item.ResourceVersion}, columns); err != nil {
			return err
		}
	default:
		e.typed(buffer, item, raw)
	}
	return nil
}

// typed writes an object with its type. In lists of the API server it has none.
func (e *encoder) typed(buffer *bytes.Buffer, item *collection.Item, raw []byte) {
	body := bytes.TrimLeft(raw, " \n\t")
	if item.Kind().Kind != "" || len(body) < 2 || body[0] != '{' {
		buffer.Write(raw)
		return
	}
	buffer.WriteString(`{"kind":` + strconv.Quote(e.kind.Kind) + `,"apiVersion":` + strconv.Quote(e.kind.APIVersion))
	if rest := bytes.TrimLeft(body[1:], " \n\t"); rest[0] != '}' {
		buffer.WriteByte(',')
	}
	buffer.Write(body[1:])
}

func (e *encoder) metadata(buffer *bytes.Buffer, raw []byte) error {
	var object struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return err
	}
	buffer.WriteString(`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":`)
	buffer.Write(object.Metadata)
	buffer.WriteByte('}')
	return nil
}

func (e *encoder) list(buffer *bytes.Buffer, items []*collection.Item, meta metav1.ListMeta) error {
	if e.form == formTable {
		return e.table(buffer, items, meta, true)
	}
	kind := metav1.TypeMeta{Kind: e.kind.Kind + "List", APIVersion: e.kind.APIVersion}
	if e.form == formMetadata {
		kind = metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: "meta.k8s.io/v1"}
	}
	header, err := json.Marshal(meta)
	if err != nil {
		return err
	}
	buffer.WriteString(`{"kind":` + strconv.Quote(kind.Kind) + `,"apiVersion":` + strconv.Quote(kind.APIVersion) + `,"metadata":`)
	buffer.Write(header)
	buffer.WriteString(`,"items":[`)
	for i, item := range items {
		if i > 0 {
			buffer.WriteByte(',')
		}
		raw := e.raw(item)
		if e.form == formMetadata {
			if err := e.metadata(buffer, raw); err != nil {
				return err
			}
			continue
		}
		buffer.Write(raw)
	}
	buffer.WriteString("]}\n")
	return nil
}

func (e *encoder) table(buffer *bytes.Buffer, items []*collection.Item, meta metav1.ListMeta, columns bool) error {
	result := metav1.Table{
		TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: "meta.k8s.io/v1"}, ListMeta: meta, Rows: []metav1.TableRow{},
	}
	if columns {
		result.ColumnDefinitions = e.printer.Columns()
	}
	for _, item := range items {
		raw := e.raw(item)
		row, err := e.printer.Row(raw)
		if err != nil {
			return err
		}
		switch e.include {
		case metav1.IncludeNone:
		case metav1.IncludeObject:
			var typed bytes.Buffer
			e.typed(&typed, item, raw)
			row.Object.Raw = typed.Bytes()
		default:
			var partial bytes.Buffer
			if err := e.metadata(&partial, raw); err != nil {
				return err
			}
			row.Object.Raw = partial.Bytes()
		}
		result.Rows = append(result.Rows, row)
	}
	return json.NewEncoder(buffer).Encode(result)
}
