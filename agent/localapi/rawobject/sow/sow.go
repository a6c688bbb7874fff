// Package sow is for tests of what becomes of fields that the agent does not know: it puts
// one into every object within an object, and says which have gone.
package sow

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// field is what no server has, yet.
const field = "fieldOfANewerServer"

// Sow puts an unknown field into every object within a JSON object, but for those below the
// named members, whose values are no objects of the API (labels, capacities).
func Sow(t testing.TB, raw string, maps ...string) []byte {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(raw), &value); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	put(value, "", maps)
	sown, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return sown
}

func put(value any, path string, maps []string) {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			if !slices.Contains(maps, name) {
				put(member, path+"."+name, maps)
			}
		}
		v[field] = map[string]any{"at": path, "deep": []any{map[string]any{"n": 1}}}
	case []any:
		for i, element := range v {
			put(element, fmt.Sprintf("%s[%d]", path, i), maps)
		}
	}
}

// Lost are the places whose unknown field is in one object and not in the other, wherever
// it is there, without those at or below the named places; the object itself is named by "", alone.
func Lost(t testing.TB, before, after []byte, but ...string) []string {
	t.Helper()
	kept := places(t, after)
	var lost []string
	for _, place := range places(t, before) {
		if !slices.Contains(kept, place) && !slices.ContainsFunc(but, func(b string) bool { return place == b || b != "" && strings.HasPrefix(place, b) }) {
			lost = append(lost, place)
		}
	}
	return lost
}

func places(t testing.TB, raw []byte) []string {
	t.Helper()
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	var all []string
	var find func(any)
	find = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			for name, member := range v {
				sown, ok := member.(map[string]any)
				if name != field || !ok {
					find(member)
					continue
				}
				// The value must be whole, too.
				if fmt.Sprint(sown["deep"]) == "[map[n:1]]" {
					all = append(all, fmt.Sprint(sown["at"]))
				}
			}
		case []any:
			for _, element := range v {
				find(element)
			}
		}
	}
	find(value)
	slices.Sort(all)
	return all
}
