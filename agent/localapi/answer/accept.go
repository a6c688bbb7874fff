package answer

import (
	"cmp"
	"mime"
	"slices"
	"strconv"
	"strings"
)

// form is what an answer is made of.
type form int

const (
	formObject form = iota
	formMetadata
	formTable
)

// negotiate picks the first form of the Accept header that can be served as JSON. False:
// there is none.
func negotiate(accept string) (form, bool) {
	type clause struct {
		form   form
		weight float64
	}
	if strings.TrimSpace(accept) == "" {
		return formObject, true
	}
	var clauses []clause
	for _, part := range strings.Split(accept, ",") {
		media, params, err := mime.ParseMediaType(strings.TrimSpace(part))
		if err != nil || media != "application/json" && media != "application/*" && media != "*/*" {
			continue
		}
		weight := 1.0
		if q, err := strconv.ParseFloat(params["q"], 64); err == nil {
			weight = q
		}
		if f, ok := formOf(params); ok && weight > 0 {
			clauses = append(clauses, clause{f, weight})
		}
	}
	if len(clauses) == 0 {
		return 0, false
	}
	slices.SortStableFunc(clauses, func(a, b clause) int { return cmp.Compare(b.weight, a.weight) })
	return clauses[0].form, true
}

func formOf(params map[string]string) (form, bool) {
	switch as := params["as"]; {
	case as == "":
		return formObject, true
	case params["g"] != "meta.k8s.io" || params["v"] != "v1":
		return 0, false
	case as == "Table":
		return formTable, true
	case as == "PartialObjectMetadata" || as == "PartialObjectMetadataList":
		return formMetadata, true
	}
	return 0, false
}
