// Package table makes the rows that kubectl shows.
package table

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Printer makes rows of one resource's objects.
type Printer struct {
	columns []metav1.TableColumnDefinition
	row     func(raw []byte) (metav1.TableRow, error)
}

// Columns of every row.
func (p *Printer) Columns() []metav1.TableColumnDefinition { return p.columns }

// Plain says whether there are no columns but name and age.
func (p *Printer) Plain() bool { return p == plain }

// Row of one object, without the object itself.
func (p *Printer) Row(raw []byte) (metav1.TableRow, error) { return p.row(raw) }

// For is the printer of a resource: with kubectl's usual columns where it has its own, name
// and age otherwise.
func For(resource schema.GroupResource) *Printer {
	if printer, ok := builtin[resource]; ok {
		return printer
	}
	return plain
}

// builtin are the resources with columns of their own.
var builtin = map[schema.GroupResource]*Printer{
	{Resource: "pods"}:       printer(podColumns, podRow),
	{Resource: "nodes"}:      printer(nodeColumns, nodeRow),
	{Resource: "services"}:   printer(serviceColumns, serviceRow),
	{Resource: "configmaps"}: printer(configMapColumns, configMapRow),
	{Resource: "secrets"}:    printer(secretColumns, secretRow),
	{Group: "discovery.k8s.io", Resource: "endpointslices"}: printer(endpointSliceColumns, endpointSliceRow),
}

var plain = printer([]metav1.TableColumnDefinition{nameColumn, {Name: "Age", Type: "date", Description: ageColumn.Description}},
	func(object *metav1.PartialObjectMetadata) metav1.TableRow {
		return cells(object.Name, since(object.CreationTimestamp))
	})

var (
	nameColumn = metav1.TableColumnDefinition{Name: "Name", Type: "string", Format: "name", Description: "Name of the object"}
	ageColumn  = metav1.TableColumnDefinition{Name: "Age", Type: "string", Description: "Time since the object was created"}
)

func column(name, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: "string", Description: description}
}

// wide is a column that kubectl shows with -o wide.
func wide(name, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: "string", Description: description, Priority: 1}
}

func printer[T any](columns []metav1.TableColumnDefinition, row func(*T) metav1.TableRow) *Printer {
	return &Printer{columns: columns, row: func(raw []byte) (metav1.TableRow, error) {
		var object T
		if err := json.Unmarshal(raw, &object); err != nil {
			return metav1.TableRow{}, fmt.Errorf("decoding a %T: %w", object, err)
		}
		return row(&object), nil
	}}
}

func cells(values ...any) metav1.TableRow { return metav1.TableRow{Cells: values} }

// since is an age as kubectl writes it.
func since(t metav1.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(t.Time))
}

func or(value, absent string) string {
	if value == "" {
		return absent
	}
	return value
}
