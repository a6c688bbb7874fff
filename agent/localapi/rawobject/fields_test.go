package rawobject

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFields(t *testing.T) {
	f, err := Decode([]byte(`{"text":"a","part":{"x":1},"list":[{"name":"b"},{"name":"c"}],"number":18446744073709551615}`))
	if err != nil {
		t.Fatal(err)
	}
	if f.Text("text") != "a" || f.Text("part") != "" || f.Text("none") != "" {
		t.Errorf("texts %q, %q, %q", f.Text("text"), f.Text("part"), f.Text("none"))
	}
	if len(f.Part("part")) != 1 || len(f.Part("text")) != 0 || f.Part("none") == nil {
		t.Errorf("parts %v, %v, %v", f.Part("part"), f.Part("text"), f.Part("none"))
	}
	if list := f.List("list"); len(list) != 2 || list[1].Text("name") != "c" || f.List("text") != nil {
		t.Errorf("lists %v, %v", list, f.List("text"))
	}
	f.Set("text", []int{1})
	want := `{"list":[{"name":"b"},{"name":"c"}],"number":18446744073709551615,"part":{"x":1},"text":[1]}`
	if diff := cmp.Diff(want, string(f.Encode())); diff != "" {
		t.Error(diff)
	}
}

func TestDecode(t *testing.T) {
	cases := map[string]struct {
		raw  string
		want bool
	}{
		"an object": {raw: `{"a":1}`, want: true},
		"null":      {raw: `null`, want: true},
		"a list":    {raw: `[]`},
		"no JSON":   {raw: `{`},
		"nothing":   {},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, err := Decode([]byte(tc.raw))
			if (err == nil) != tc.want || tc.want && f == nil {
				t.Errorf("%v, %v", f, err)
			}
			if Of([]byte(tc.raw)) == nil {
				t.Error("no fields to read")
			}
		})
	}
}
