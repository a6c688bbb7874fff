package rawobject

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// texts are read as encoding/json reads them, or left to it.
var texts = map[string]string{
	"an object of every kind of value":   `{"a":"b","n":-1.5e+3,"o":{"p":[1,{"q":null}]},"t":true,"f":false,"z":null}`,
	"space everywhere":                   " {\n\t\"a\" : [ 1 , { } , [ ] ] , \"b\" : \"c\" }\r\n",
	"escapes in a value":                 `{"a":"\"\\\/\b\f\n\r\t\u00e9\ud800"}`,
	"an escape in a name":                `{"\u0061":1,"a":2}`,
	"a name twice":                       `{"a":1,"a":{"b":2}}`,
	"letters beyond ASCII":               `{"ä":"ö"}`,
	"bytes that are no UTF-8":            "{\"a\xff\":\"\xff\"}",
	"an empty object":                    `{}`,
	"null":                               `null`,
	"a list of objects":                  `[{"a":1},{}]`,
	"a list with null":                   `[{"a":1},null]`,
	"an empty list":                      `[]`,
	"a text":                             `"a"`,
	"a text with an escape":              `"a\n"`,
	"nothing":                            ``,
	"two objects":                        `{} {}`,
	"a comma too many in an object":      `{"a":1,}`,
	"a comma too many in a list":         `{"a":[1,]}`,
	"a missing colon":                    `{"a" 1}`,
	"a name without quotes":              `{a:1}`,
	"an object that does not end":        `{"a":{"b":1}`,
	"a string that does not end":         `{"a":"b`,
	"a control character in a string":    "{\"a\":\"\n\"}",
	"an escape that does not exist":      `{"a":"\x"}`,
	"half a code point":                  `{"a":"\u00e"}`,
	"a zero before a number":             `{"a":01}`,
	"a number without digits":            `{"a":-}`,
	"a fraction without digits":          `{"a":1.}`,
	"an exponent without digits":         `{"a":1e+}`,
	"a plus before a number":             `{"a":+1}`,
	"a word that is none":                `{"a":nul}`,
	"a value of nothing":                 `{"a":}`,
	"lists deeper than are cut here":     `{"a":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`,
	"lists deeper than anybody can read": `{"a":` + strings.Repeat("[", 10001) + strings.Repeat("]", 10001) + `}`,
}

func TestScanIsWhatJSONIs(t *testing.T) {
	for name, text := range texts {
		t.Run(name, func(t *testing.T) { compare(t, []byte(text)) })
	}
}

func FuzzScan(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Fuzz(compare)
}

// compare says where a text is read as something else than encoding/json makes of it.
func compare(t *testing.T, text []byte) {
	if got, ok := fieldsOf(text); ok {
		var want Fields
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatalf("%q was cut although %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
		var back, whole any
		if err := json.Unmarshal(got.Encode(), &back); err != nil {
			t.Fatalf("%q was written as %q: %v", text, got.Encode(), err)
		}
		_ = json.Unmarshal(text, &whole)
		if diff := cmp.Diff(whole, back); diff != "" {
			t.Errorf("%q was written as something else: %s", text, diff)
		}
	}
	if got, ok := listOf(text); ok {
		var want []Fields
		if err := json.Unmarshal(text, &want); err != nil || !cmp.Equal(want, got) {
			t.Errorf("%q: list %v, not %v (%v)", text, got, want, err)
		}
	}
	if got, ok := textOf(text); ok {
		var want string
		if err := json.Unmarshal(text, &want); err != nil || want != got {
			t.Errorf("%q: text %q, not %q (%v)", text, got, want, err)
		}
	}
}

func TestScanCutsWhatIsUsual(t *testing.T) {
	for _, name := range []string{"an object of every kind of value", "space everywhere", "escapes in a value", "an empty object"} {
		if _, ok := fieldsOf([]byte(texts[name])); !ok {
			t.Errorf("%s was left to encoding/json", name)
		}
	}
	if _, ok := listOf([]byte(texts["a list of objects"])); !ok {
		t.Error("a list was left to encoding/json")
	}
}

func TestSetIsWhatJSONWouldWrite(t *testing.T) {
	cases := map[string]any{
		"fields":          Fields{"b": json.RawMessage(`1`), "a": json.RawMessage(`"x"`)},
		"no fields":       Fields(nil),
		"a list":          []Fields{{"a": json.RawMessage(`1`)}, {}, nil},
		"no list":         []Fields(nil),
		"an empty list":   []Fields{},
		"a value of nil":  Fields{"a": nil},
		"a name to quote": Fields{"a\"\n": json.RawMessage(`1`)},
		"a number":        7,
	}
	for name, value := range cases {
		t.Run(name, func(t *testing.T) {
			want, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			f := Fields{}
			f.Set("field", value)
			if diff := cmp.Diff(string(want), string(f["field"])); diff != "" {
				t.Error(diff)
			}
		})
	}
}
