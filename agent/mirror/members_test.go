package mirror

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCutMember(t *testing.T) {
	cases := map[string]struct{ data, want string }{
		"the only member":                        {`{"metadata":{"managedFields":[1]}}`, `{"metadata":{}}`},
		"the first member":                       {`{"metadata":{"managedFields":[{"a":"]}"}],"name":"x"}}`, `{"metadata":{"name":"x"}}`},
		"the last member":                        {`{"metadata":{"name":"x","managedFields":[]},"z":1}`, `{"metadata":{"name":"x"},"z":1}`},
		"a member in the middle":                 {`{"metadata":{"name":"x","managedFields":null,"uid":"u"}}`, `{"metadata":{"name":"x","uid":"u"}}`},
		"spaces and lines are left alone":        {"{ \"metadata\" : {\n \"name\": \"x\" ,\n \"managedFields\" : [ ] } }", "{ \"metadata\" : {\n \"name\": \"x\"  } }"},
		"a member of another object stays":       {`{"spec":{"managedFields":1},"metadata":{"a":2}}`, `{"spec":{"managedFields":1},"metadata":{"a":2}}`},
		"a string of that text stays":            {`{"metadata":{"a":"\"managedFields\":[1]"}}`, `{"metadata":{"a":"\"managedFields\":[1]"}}`},
		"no metadata":                            {`{"a":1}`, `{"a":1}`},
		"metadata that is no object":             {`{"metadata":7}`, `{"metadata":7}`},
		"a list":                                 {`[1]`, `[1]`},
		"a number before the metadata":           {`{"n":1.5e3,"metadata":{"managedFields":0}}`, `{"n":1.5e3,"metadata":{}}`},
		"text that ends early is left as it is":  {`{"metadata":{"managedFields"`, `{"metadata":{"managedFields"`},
		"a key that only begins with that name":  {`{"metadata":{"managedFieldsX":1}}`, `{"metadata":{"managedFieldsX":1}}`},
		"an escaped quote before the end":        {`{"metadata":{"managedFields":"\\\"}","b":2}}`, `{"metadata":{"b":2}}`},
		"unknown fields of newer servers remain": {`{"metadata":{"managedFields":[],"future":{"x":[1,{}]}},"new":true}`, `{"metadata":{"future":{"x":[1,{}]}},"new":true}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, string(cutMember([]byte(tc.data), "metadata", "managedFields"))); diff != "" {
				t.Errorf("got (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzCutMember: whatever the text is, the result is what decoding, deleting and encoding gives.
func FuzzCutMember(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"x","managedFields":[{"f":"\\\""}],"uid":"u"},"spec":[1,2,{"a":null}]}`))
	f.Add([]byte(`{"metadata":{"managedFields":1}}`))
	f.Add([]byte(`{"metadata`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got := cutMember(data, "metadata", "managedFields")
		var before, after map[string]any
		if json.Unmarshal(data, &before) != nil {
			return
		}
		if err := json.Unmarshal(got, &after); err != nil {
			t.Fatalf("%q became %q: %v", data, got, err)
		}
		// Of two members of one name Go takes the last and the cut the first: no API server sends that.
		if again, ok := after["metadata"].(map[string]any); ok && again["managedFields"] != nil {
			return
		}
		if metadata, ok := before["metadata"].(map[string]any); ok {
			delete(metadata, "managedFields")
		}
		if want, ok := after["metadata"].(map[string]any); ok {
			delete(want, "managedFields")
		}
		if diff := cmp.Diff(before, after); diff != "" && !twice(data) {
			t.Errorf("%q became %q (-want +got):\n%s", data, got, diff)
		}
	})
}

// twice says whether members of one name can be in it more than once.
func twice(data []byte) bool {
	canonical := map[string]json.RawMessage{}
	if json.Unmarshal(data, &canonical) != nil {
		return true
	}
	first, _ := findMember(data, "metadata")
	return string(canonical["metadata"]) != string(data[first.value:first.end])
}
