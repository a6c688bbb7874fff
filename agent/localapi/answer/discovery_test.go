package answer

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
)

// recall is a Memory.
type recall map[string][]byte

func (r recall) Remember(_, key string, value []byte) { r[key] = value }

func (r recall) Remembered(string) map[string][]byte { return maps.Clone(r) }

func (everybody) Identify(_ context.Context, caller Caller) error { return nil }

func TestDiscovery(t *testing.T) {
	const groups = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"metadata":{"name":"apps"},"versions":[
		{"version":"v1","resources":[{"resource":"deployments","responseKind":{"kind":"Deployment"},"scope":"Namespaced","singularResource":"deployment","verbs":["get"],"shortNames":["deploy"],
		"subresources":[{"subresource":"scale","responseKind":{"group":"autoscaling","version":"v1","kind":"Scale"},"verbs":["get"]}]}]},{"version":"v1beta1"}]}]}`
	const core = `{"items":[{"metadata":{},"versions":[{"version":"v1","resources":[{"resource":"pods","responseKind":{"kind":"Pod"},"scope":"Namespaced","verbs":["list"]}]}]}]}`
	answers := map[string]string{"/api": core, "/apis": groups, "/version": `{"gitVersion":"v1.37.2"}`}
	read := func(_ context.Context, path, _ string) ([]byte, error) {
		if answers[path] == "" {
			return nil, errors.New("no answer")
		}
		return []byte(answers[path]), nil
	}
	cases := map[string]struct {
		reach  Reach
		path   string
		accept string
		want   string
	}{
		"the API server speaks for itself": {reach: Linked, path: "/apis", want: "upstream"},
		"all in one":                       {path: "/apis", accept: aggregated + ",application/json", want: groups},
		"the core in one":                  {path: "/api", accept: aggregated, want: core},
		"groups":                           {path: "/apis", want: `"kind":"APIGroupList","apiVersion":"v1","groups":[{"kind":"APIGroup","apiVersion":"v1","name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"},{"groupVersion":"apps/v1beta1","version":"v1beta1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}]`},
		"one group":                        {path: "/apis/apps", want: `"kind":"APIGroup","apiVersion":"v1","name":"apps"`},
		"one version":                      {path: "/apis/apps/v1", want: `{"name":"deployments/scale","singularName":"","namespaced":true,"group":"autoscaling","version":"v1","kind":"Scale","verbs":["get"]}`},
		"a version without resources":      {path: "/apis/apps/v1beta1", want: `"groupVersion":"apps/v1beta1","resources":[]`},
		"core versions":                    {path: "/api", want: `"versions":["v1"]`},
		"core resources":                   {path: "/api/v1", want: `{"name":"pods","singularName":"","namespaced":true,"kind":"Pod","verbs":["list"]}`},
		"the server's version":             {path: "/version", want: "v1.37.2"},
		"a group that there is not":        {path: "/apis/none", want: `"code":404`},
		"a path that is not kept":          {path: "/openapi/v2", want: "upstream"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.reach == Undecided {
				tc.reach = CutOff
			}
			r := newRig(t, tc.reach, held...)
			r.Memory = recall{}
			if !r.discover(t.Context(), read) {
				t.Fatal("nothing was kept")
			}
			var header []string
			if tc.accept != "" {
				header = append(header, "Accept: "+tc.accept)
			}
			_, body, headers := r.get(t, tc.path, header...)
			if !strings.Contains(body, tc.want) {
				t.Errorf("%s answers %s", tc.path, body)
			}
			if tc.accept != "" && headers.Get("Content-Type") != aggregated {
				t.Errorf("content type %q, by which clients know the form", headers.Get("Content-Type"))
			}
		})
	}
	t.Run("what cannot be read is not kept", func(t *testing.T) {
		r := newRig(t, CutOff, held...)
		r.Memory = recall{}
		delete(answers, "/version")
		if r.discover(t.Context(), read) {
			t.Error("it says that everything was read")
		}
		if _, body, _ := r.get(t, "/version"); body != "upstream" {
			t.Error(body)
		}
	})
}
