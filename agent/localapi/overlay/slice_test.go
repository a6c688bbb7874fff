package overlay

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestSlice(t *testing.T) {
	slice := func(family, addresses, conditions string) string {
		return `{"addressType":"` + family + `","endpoints":[` +
			`{"addresses":["10.9.0.1"],"conditions":{"ready":true},"targetRef":{"kind":"Pod","namespace":"shop","name":"elsewhere","uid":"u2"}},` +
			`{"addresses":` + addresses + `,"conditions":` + conditions + `,"nodeName":"edge-1","targetRef":{"kind":"Pod","namespace":"shop","name":"till","uid":"u1"}}]}`
	}
	const ready = `"conditions":[{"type":"Ready","status":"True"}]`
	cases := map[string]struct {
		slice, status, want string
	}{
		"a pod with another address": {
			slice:  slice("IPv4", `["10.0.0.1"]`, `{"ready":true,"serving":true,"terminating":false}`),
			status: `{"podIPs":[{"ip":"10.0.0.2"},{"ip":"fd00::2"}],` + ready + `}`,
			want:   slice("IPv4", `["10.0.0.2"]`, `{"ready":true,"serving":true,"terminating":false}`),
		},
		"of the other family": {
			slice:  slice("IPv6", `["fd00::1"]`, `{"ready":true,"serving":true}`),
			status: `{"podIPs":[{"ip":"10.0.0.2"},{"ip":"fd00::2"}],` + ready + `}`,
			want:   slice("IPv6", `["fd00::2"]`, `{"ready":true,"serving":true}`),
		},
		"a pod that is not ready": {
			slice:  slice("IPv4", `["10.0.0.1"]`, `{"ready":true}`),
			status: `{"podIPs":[{"ip":"10.0.0.2"}]}`,
			want:   slice("IPv4", `["10.0.0.2"]`, `{"ready":false,"serving":false}`),
		},
		"a pod that has no address yet": {
			slice:  slice("IPv4", `["10.0.0.1"]`, `{"ready":true}`),
			status: `{` + ready + `}`,
			want:   slice("IPv4", `["10.0.0.1"]`, `{"ready":false,"serving":false}`),
		},
		"a pod of which nothing was written": {
			slice: slice("IPv4", `["10.0.0.1"]`, `{"ready":true}`), want: slice("IPv4", `["10.0.0.1"]`, `{"ready":true}`),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Slice([]byte(tc.slice), func(namespace, name string, uid types.UID) (json.RawMessage, bool) {
				return json.RawMessage(tc.status), tc.status != "" && namespace == "shop" && name == "till" && uid == "u1"
			})
			if diff := cmp.Diff(compact(t, []byte(tc.want)), compact(t, got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
