package answer

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rekindle.edge/agent/snapshot"
)

func TestWhatKubeletReadsUpstreamIsKept(t *testing.T) {
	const (
		data    = "/api/v1/namespaces/default/persistentvolumeclaims/data"
		unknown = "/api/v1/namespaces/default/persistentvolumeclaims/new"
		claim   = `{"kind":"PersistentVolumeClaim","metadata":{"name":"data"},"newField":7}`
		kubelet = "Accept: application/vnd.kubernetes.protobuf,application/json"
		zipped  = "Accept-Encoding: gzip"
	)
	cases := map[string]struct {
		path, answer string
		header       []string
		want         []string
		wantAccept   string
	}{
		"a claim":                             {path: data, answer: claim, header: []string{kubelet, zipped}, want: []string{"default/data " + claim}, wantAccept: "application/json"},
		"one that the node does not hold":     {path: unknown, answer: claim, header: []string{kubelet}, want: []string{"default/new " + claim}, wantAccept: "application/json"},
		"not what is too large":               {path: data, answer: strings.Repeat("x", largestRead+1), header: []string{kubelet}, wantAccept: "application/json"},
		"not an answer to others":             {path: data, answer: claim, header: []string{"Authorization: Bearer x"}, wantAccept: ""},
		"not a row":                           {path: data, answer: claim, header: []string{"Accept: application/json;as=Table;v=v1;g=meta.k8s.io"}, wantAccept: "application/json;as=Table;v=v1;g=meta.k8s.io"},
		"not what wants protobuf and no JSON": {path: data, answer: claim, header: []string{"Accept: application/vnd.kubernetes.protobuf"}, wantAccept: "application/vnd.kubernetes.protobuf"},
		"not what is watched":                 {path: "/api/v1/namespaces/default/configmaps/settings", answer: claim, header: []string{kubelet}, wantAccept: "application/vnd.kubernetes.protobuf,application/json"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Linked, held...).fill()
			r.link.answer = tc.answer
			var accept string
			r.link.header = func(header http.Header) {
				accept = header.Get("Accept")
				if tc.wantAccept == "application/json" && header.Get("Accept-Encoding") != "" {
					t.Error("the answer may be compressed")
				}
			}
			seen := make(chan string, 2)
			r.ReadUpstream = func(scope snapshot.Scope, raw []byte) { seen <- scope.Namespace + "/" + scope.Name + " " + string(raw) }
			code, body, _ := r.get(t, tc.path, tc.header...)
			if code != 200 || body != tc.answer {
				t.Errorf("answered with %d and %d bytes", code, len(body))
			}
			var got []string
			select {
			case one := <-seen:
				got = append(got, one)
			case <-time.After(patience(len(tc.want))):
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if accept != tc.wantAccept {
				t.Errorf("asked for %q, want %q", accept, tc.wantAccept)
			}
		})
	}
}

// patience is long when something is to come.
func patience(wanted int) time.Duration {
	if wanted == 0 {
		return 20 * time.Millisecond
	}
	return 10 * time.Second
}
