package mirror

import (
	"testing"
	"time"

	"github.com/go-logr/logr"

	"rekindle.edge/agent/snapshot"
)

func TestWhatKubeletWasAnsweredIsTaken(t *testing.T) {
	scope := snapshot.Scope{Resource: claims, Namespace: "shop", Name: "data"}
	claim := func(uid, version, phase string) []byte {
		return []byte(`{"kind":"PersistentVolumeClaim","apiVersion":"v1","metadata":{"name":"data","namespace":"shop","uid":"` + uid +
			`","resourceVersion":"` + version + `","managedFields":[{}]},"status":{"phase":"` + phase + `"},"newField":7}`)
	}
	cases := map[string]struct {
		held, seen []byte
		want       string // of what is held then
		wantSoon   bool   // the mirror looks itself
	}{
		"a claim that was bound meanwhile": {
			held: claim("u-1", "5", "Pending"), seen: claim("u-1", "7", "Bound"),
			want: `{"kind":"PersistentVolumeClaim","apiVersion":"v1","metadata":{"name":"data","namespace":"shop","uid":"u-1","resourceVersion":"7"},"status":{"phase":"Bound"},"newField":7}`,
		},
		"the same again": {
			held: claim("u-1", "5", "Bound"), seen: claim("u-1", "5", "Bound"), want: string(claim("u-1", "5", "Bound")),
		},
		"an answer that was on its way for long": {
			held: claim("u-1", "7", "Bound"), seen: claim("u-1", "5", "Pending"), want: string(claim("u-1", "7", "Bound")),
		},
		"another claim of the same name, of whatever cluster": {
			held: claim("u-1", "5", "Bound"), seen: claim("u-2", "9", "Pending"), want: string(claim("u-1", "5", "Bound")), wantSoon: true,
		},
		"one that is not held yet":  {seen: claim("u-1", "5", "Bound"), wantSoon: true},
		"one that is gone":          {held: claim("u-1", "5", "Bound"), want: string(claim("u-1", "5", "Bound")), wantSoon: true},
		"an answer that is no JSON": {held: claim("u-1", "5", "Bound"), seen: []byte("k8s\x00"), want: string(claim("u-1", "5", "Bound")), wantSoon: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			store, err := snapshot.Open(t.TempDir(), logr.Discard())
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			objects := store.Objects()
			if tc.held != nil {
				version := "5"
				if string(tc.held) == string(claim("u-1", "7", "Bound")) {
					version = "7"
				}
				o := snapshot.Object{Namespace: "shop", Name: "data", UID: "u-1", ResourceVersion: version, Raw: tc.held}
				if err := objects.Sync(scope, version, []snapshot.Object{o}); err != nil {
					t.Fatal(err)
				}
			}
			m := New(objects, time.Now, func() {})
			m.Seen(scope, tc.seen)
			if held, _ := objects.Get(claims, "shop", "data"); string(held.Raw) != tc.want {
				t.Errorf("held is\n%s, want\n%s", held.Raw, tc.want)
			}
			if soon := len(m.written) == 1; soon != tc.wantSoon {
				t.Errorf("read soon: %v, want %v", soon, tc.wantSoon)
			}
		})
	}
}
