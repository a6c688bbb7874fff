package order

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestViewPod(t *testing.T) {
	const object = `{"metadata":{"namespace":"shop","name":"web","uid":"u","labels":{"a":"b"},"annotations":{"x":"y"},"creationTimestamp":"2026-01-01T00:00:00Z"%s},
		"spec":{"nodeName":"edge","hostNetwork":true,"priority":7,"priorityClassName":"high","activeDeadlineSeconds":60},
		"status":{"phase":"Running","startTime":"2026-01-01T00:01:00Z","conditions":[{"type":"Ready","status":"False"},{"type":"ContainersReady","status":"True"}],
			"containerStatuses":[{"containerID":"containerd://c1"},{}],"podIPs":[{"ip":"10.0.0.1"},{"ip":"fd00::1"}]}}`
	raw := fmt.Appendf(nil, object, "")
	got, err := viewPod(raw)
	if err != nil {
		t.Fatal(err)
	}
	want := pod{
		name: name{"shop", "web"}, uid: "u", labels: map[string]string{"a": "b"}, hostNetwork: true, priorityClass: "high", priority: 7,
		created: epoch, ends: epoch.Add(2 * time.Minute), containers: []string{"c1", ""}, ips: []string{"10.0.0.1", "fd00::1"}, raw: raw,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(pod{}, name{})); diff != "" {
		t.Errorf("pod (-want +got):\n%s", diff)
	}
	if leaving, err := viewPod(fmt.Appendf(nil, object, `,"deletionTimestamp":"2026-01-01T00:00:00Z"`)); err != nil || !leaving.never() {
		t.Errorf("a pod that is being deleted is %+v, error %v", leaving, err)
	}
}

func TestHasWord(t *testing.T) {
	cases := map[string]struct {
		text, word string
		want       bool
	}{
		"a name alone":                 {"db", "db", true},
		"in an address":                {"tcp://db:5432/x", "db", true},
		"with its namespace":           {"http://db.shop.svc/", "db.shop", true},
		"a part of a longer name":      {"shop-db", "db", false},
		"the beginning of another":     {"db2", "db", false},
		"a namespace and not the name": {"web.db", "db", false},
		"after a part of another":      {"db2,db", "db", true},
		"not at all":                   {"", "db", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := hasWord(tc.text, tc.word); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestManifestDir(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	with, without, relative := write("with", "staticPodPath: /etc/static\n"), write("without", "port: 1\n"), write("relative", "staticPodPath: pods\n")
	cases := map[string]struct {
		args []string
		want string
	}{
		"from kubelet's configuration":        {[]string{"kubelet", "--config=" + with}, "/etc/static"},
		"from an argument of its own":         {[]string{"kubelet", "--config", with, "--pod-manifest-path=/etc/other"}, "/etc/other"},
		"relative to the file":                {[]string{"kubelet", "--config", relative}, filepath.Join(dir, "pods")},
		"none in the configuration":           {[]string{"kubelet", "--config=" + without}, ""},
		"a configuration that cannot be read": {[]string{"kubelet", "--config=" + dir}, ""},
		"a kubelet that does not run":         {nil, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := ManifestDir(tc.args); got != tc.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestFingerprintChangesWithTheFiles(t *testing.T) {
	dir := t.TempDir()
	print := Fingerprint(func() string { return dir })
	seen := map[string]bool{print(): true}
	for _, change := range []func() error{
		func() error { return os.WriteFile(filepath.Join(dir, "a.yaml"), []byte("a"), 0o600) },
		func() error { return os.WriteFile(filepath.Join(dir, "a.yaml"), []byte("longer"), 0o600) },
		func() error { return os.Rename(filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yaml")) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if now := print(); seen[now] {
			t.Errorf("still %q", now)
		} else {
			seen[now] = true
		}
	}
}
