package table

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/jsonpath"
)

// definition is the part of a CustomResourceDefinition that columns come from.
type definition struct {
	Spec struct {
		Versions []struct {
			Name    string          `json:"name"`
			Columns []printerColumn `json:"additionalPrinterColumns"`
		} `json:"versions"`
	} `json:"spec"`
}

type printerColumn struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Format      string `json:"format"`
	Description string `json:"description"`
	Priority    int32  `json:"priority"`
	JSONPath    string `json:"jsonPath"`
}

// Custom is the printer of a custom resource's version, by its CustomResourceDefinition:
// name and age if that names no columns.
func Custom(crd []byte, version string) (*Printer, error) {
	var d definition
	if err := json.Unmarshal(crd, &d); err != nil {
		return nil, err
	}
	for _, v := range d.Spec.Versions {
		if v.Name == version && len(v.Columns) > 0 {
			return custom(v.Columns)
		}
	}
	return plain, nil
}

func custom(of []printerColumn) (*Printer, error) {
	columns := []metav1.TableColumnDefinition{nameColumn}
	paths := make([]*jsonpath.JSONPath, len(of))
	for i, c := range of {
		paths[i] = jsonpath.New(c.Name).AllowMissingKeys(true)
		if err := paths[i].Parse("{" + c.JSONPath + "}"); err != nil {
			return nil, fmt.Errorf("column %q: %w", c.Name, err)
		}
		columns = append(columns, metav1.TableColumnDefinition{
			Name: c.Name, Type: c.Type, Format: c.Format, Description: c.Description, Priority: c.Priority,
		})
	}
	return &Printer{columns: columns, row: func(raw []byte) (metav1.TableRow, error) {
		var object map[string]any
		if err := json.Unmarshal(raw, &object); err != nil {
			return metav1.TableRow{}, err
		}
		metadata, _ := object["metadata"].(map[string]any)
		row := cells(metadata["name"])
		for i, c := range of {
			row.Cells = append(row.Cells, cell(paths[i], c.Type, object))
		}
		return row, nil
	}}, nil
}

// cell is nil for a value that is not there, or not of the column's type.
func cell(path *jsonpath.JSONPath, kind string, object map[string]any) any {
	results, err := path.FindResults(object)
	if err != nil || len(results) == 0 || len(results[0]) == 0 {
		return nil
	}
	value := results[0][0].Interface()
	if value == nil && kind != "string" {
		return nil
	}
	switch kind {
	case "string":
		var text bytes.Buffer
		if path.PrintResults(&text, []reflect.Value{reflect.ValueOf(value)}) != nil {
			return nil
		}
		return text.String()
	case "integer":
		if number, ok := value.(float64); ok {
			return int64(number)
		}
	case "number":
		if number, ok := value.(float64); ok {
			return number
		}
	case "boolean":
		if yes, ok := value.(bool); ok {
			return yes
		}
	case "date":
		text, ok := value.(string)
		if !ok {
			return nil
		}
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return "<invalid>"
		}
		return since(metav1.NewTime(at))
	}
	return nil
}
