package kubeletpki

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/utils/clock"
)

// pair is a certificate and a key as kubelet makes them.
func pair(t *testing.T) (cert, key string) {
	t.Helper()
	c, k, err := certutil.GenerateSelfSignedCertKey("edge-1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(c), string(k)
}

func fill(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	slices.Sort(all)
	return all
}

func TestMend(t *testing.T) {
	cert, key := pair(t)
	_, otherKey := pair(t)
	aside := []string{"kubelet.crt.damaged", "kubelet.key.damaged"}
	cases := map[string]struct {
		files     map[string]string
		want      []string // files afterwards
		wantFound string
	}{
		"a whole pair stays":                       {files: map[string]string{servingCert: cert, servingKey: key}, want: []string{servingCert, servingKey}},
		"none is none":                             {},
		"an empty pair is moved aside":             {files: map[string]string{servingCert: "", servingKey: ""}, want: aside, wantFound: "empty"},
		"an empty certificate takes its key along": {files: map[string]string{servingCert: "", servingKey: key}, want: aside, wantFound: "empty"},
		"an empty key takes its certificate along": {files: map[string]string{servingCert: cert, servingKey: ""}, want: aside, wantFound: "empty"},
		"half a certificate":                       {files: map[string]string{servingCert: cert[:len(cert)/2], servingKey: key}, want: aside, wantFound: "no pair"},
		"zeros, as some file systems leave them":   {files: map[string]string{servingCert: strings.Repeat("\x00", 900), servingKey: key}, want: aside, wantFound: "no pair"},
		"a key of another certificate":             {files: map[string]string{servingCert: cert, servingKey: otherKey}, want: aside, wantFound: "no pair"},
		"a certificate without a key, as when the power went while it was mended": {
			files: map[string]string{servingCert: cert}, want: aside[:1], wantFound: "missing",
		},
		"a damaged pair replaces the one of before": {
			files: map[string]string{servingCert: "", servingKey: "", servingCert + damaged: "x"}, want: aside, wantFound: "empty",
		},
		"a client certificate is never touched": {
			files: map[string]string{clientCurrent: "", servingCert: "", servingKey: ""}, want: append([]string{clientCurrent}, aside...), wantFound: "empty",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := fill(t, tc.files)
			found, err := Mend(dir)
			if err != nil {
				t.Fatal(err)
			}
			if (found == "") != (tc.wantFound == "") || !strings.Contains(found, tc.wantFound) {
				t.Errorf("found %q, want %q", found, tc.wantFound)
			}
			if diff := cmp.Diff(tc.want, names(t, dir)); diff != "" {
				t.Error(diff)
			}
			if again, err := Mend(dir); again != "" || err != nil {
				t.Errorf("a second time: %q, %v", again, err)
			}
		})
	}
}

func TestClientDamage(t *testing.T) {
	cert, key := pair(t)
	cases := map[string]struct {
		files map[string]string
		links map[string]string
		want  string
	}{
		"none":                          {},
		"whole":                         {files: map[string]string{"kubelet-client-1.pem": cert + key}, links: map[string]string{clientCurrent: "kubelet-client-1.pem"}},
		"empty":                         {files: map[string]string{"kubelet-client-1.pem": ""}, links: map[string]string{clientCurrent: "kubelet-client-1.pem"}, want: "cannot be used"},
		"cut short":                     {files: map[string]string{clientCurrent: cert + key[:20]}, want: "cannot be used"},
		"a link to a file that is gone": {links: map[string]string{clientCurrent: "kubelet-client-1.pem"}, want: "leads to a file that is gone"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := fill(t, tc.files)
			for name, target := range tc.links {
				if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
			if got := ClientDamage(dir); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestSyncer(t *testing.T) {
	dir := t.TempDir()
	s := &Syncer{Dir: dir, Clock: clock.RealClock{}}
	rounds := func(want ...string) {
		t.Helper()
		if err := s.round(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for path := range s.synced {
			got = append(got, filepath.Base(path))
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	rounds()
	for _, name := range []string{servingCert, "kubelet-client-1.pem", "other"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("kubelet-client-1.pem", filepath.Join(dir, clientCurrent)); err != nil {
		t.Fatal(err)
	}
	rounds("kubelet-client-1.pem", clientCurrent, servingCert)
	before := s.synced[filepath.Join(dir, servingCert)]
	if err := os.WriteFile(filepath.Join(dir, servingCert), []byte("longer than it was"), 0o600); err != nil {
		t.Fatal(err)
	}
	rounds("kubelet-client-1.pem", clientCurrent, servingCert)
	if s.synced[filepath.Join(dir, servingCert)] == before {
		t.Error("a certificate that has changed was not synced again")
	}
}

func TestSyncerLooksOftenAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s := &Syncer{Dir: dir, Clock: clock.RealClock{}}
		go s.Run(t.Context())
		time.Sleep(5 * time.Second)
		if err := os.WriteFile(filepath.Join(dir, servingCert), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(soonEvery + time.Millisecond)
		synctest.Wait()
		if len(s.synced) != 1 {
			t.Errorf("not synced within %s", soonEvery)
		}
	})
}
