package hold

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"rekindle.edge/agent/snapshot"
)

// oneVolume holds one volume.
type oneVolume string

func (v oneVolume) Get(_ schema.GroupVersionResource, _, name string) (snapshot.Object, bool) {
	return snapshot.Object{Raw: []byte(v)}, name == "data"
}

func TestExclusive(t *testing.T) {
	attachment := func(volume string) string { return `{"spec":{"source":{"persistentVolumeName":"` + volume + `"}}}` }
	cases := map[string]struct {
		attachment, modes string
		want              bool
	}{
		"one node":                {attachment: attachment("data"), modes: `["ReadWriteOnce"]`, want: true},
		"one pod":                 {attachment: attachment("data"), modes: `["ReadWriteOncePod"]`, want: true},
		"many nodes":              {attachment: attachment("data"), modes: `["ReadWriteOnce","ReadWriteMany"]`},
		"a volume nobody knows":   {attachment: attachment("other"), modes: `["ReadWriteMany"]`, want: true},
		"an inline volume":        {attachment: `{"spec":{"source":{}}}`, modes: `["ReadWriteMany"]`, want: true},
		"a volume that says none": {attachment: attachment("data"), modes: `null`, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := exclusive([]byte(tc.attachment), oneVolume(`{"spec":{"accessModes":`+tc.modes+`}}`)); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}
