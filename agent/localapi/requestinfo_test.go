package localapi

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"
)

func TestOptionsOfACallerAreNotLogged(t *testing.T) {
	lines := 0
	klog.SetLogger(funcr.New(func(string, string) { lines++ }, funcr.Options{}))
	defer klog.ClearLogger()
	s := New(testLog(t), PKI{}, &IdentitySource{})
	cases := map[string]struct{ path, verb, name string }{
		"a limit that is no number":   {path: pods + "&limit=x", verb: "list"},
		"a selector without end":      {path: "/api/v1/services?labelSelector=" + strings.Repeat("(", 1000), verb: "list"},
		"a watch of such":             {path: "/api/v1/services?watch=1&labelSelector=((", verb: "watch"},
		"a watch that is none":        {path: "/api/v1/services?watch=0&labelSelector=((", verb: "list"},
		"a name by its selector":      {path: "/api/v1/secrets?fieldSelector=metadata.name%3Da", verb: "list", name: "a"},
		"options of something else":   {path: "/api/v1/namespaces/a/pods/b/log?limitBytes=x&limit=x", verb: "get", name: "b"},
		"one object, with a timeout":  {path: "/api/v1/namespaces/a/pods/b?timeout=10s", verb: "get", name: "b"},
		"a broken escape in the text": {path: "/api/v1/services?labelSelector=%zz", verb: "list"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			info, err := s.infoOf(httptest.NewRequest("GET", tc.path, nil))
			if err != nil {
				t.Fatal(err)
			}
			if info.Verb != tc.verb || info.Name != tc.name {
				t.Errorf("%s of %q, want %s of %q", info.Verb, info.Name, tc.verb, tc.name)
			}
		})
	}
	if lines > 0 {
		t.Errorf("%d lines were logged", lines)
	}
}
