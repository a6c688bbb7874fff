package localapi

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestLoadPKI(t *testing.T) {
	hosts := []string{"127.0.0.1", "169.254.77.43", "localhost"}
	tests := map[string]struct {
		// between changes the directories (run, state) between two loads.
		between   func(t *testing.T, run, state string)
		hosts     []string
		wantSame  bool // authority
		wantError bool
	}{
		"the authority stays while its files do": {
			between:  func(*testing.T, string, string) {},
			wantSame: true,
		},
		"the authority outlives a reboot, which empties run": {
			between:  func(t *testing.T, run, _ string) { remove(t, run) },
			wantSame: true,
		},
		"the authority does not change within a boot when the state directory is lost": {
			between:  func(t *testing.T, _, state string) { remove(t, state) },
			wantSame: true,
		},
		"a state directory that cannot be used is told and does no harm": {
			between: func(t *testing.T, _, state string) {
				remove(t, state)
				writeTestFile(t, state, nil)
			},
			wantSame:  true,
			wantError: true,
		},
		"another address is signed by the same authority": {
			between:  func(*testing.T, string, string) {},
			hosts:    []string{"127.0.0.1", "169.254.1.1"},
			wantSame: true,
		},
		"a serving pair that a power cut left behind for another authority is replaced": {
			between: func(t *testing.T, run, state string) {
				other := filepath.Join(t.TempDir(), "other")
				if _, err := LoadPKI([]string{other}, hosts); err != nil {
					t.Fatal(err)
				}
				remove(t, run)
				for _, name := range []string{servingFile, servingKey} {
					data, err := os.ReadFile(filepath.Join(other, name))
					if err != nil {
						t.Fatal(err)
					}
					writeTestFile(t, filepath.Join(state, name), data)
				}
			},
			wantSame: true,
		},
		"an authority that is damaged everywhere is made anew and told": {
			between: func(t *testing.T, run, state string) {
				writeTestFile(t, filepath.Join(run, CAFile), []byte("x"))
				writeTestFile(t, filepath.Join(state, caKeyFile), []byte("x"))
			},
			wantError: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			run, state := filepath.Join(dir, "run"), filepath.Join(dir, "state")
			first, err := LoadPKI([]string{run, state}, hosts)
			if err != nil {
				t.Fatal(err)
			}
			tc.between(t, run, state)
			want := tc.hosts
			if want == nil {
				want = hosts
			}
			second, err := LoadPKI([]string{run, state}, want)
			if (err != nil) != tc.wantError {
				t.Errorf("error: %v, wanted one: %v", err, tc.wantError)
			}
			if same := string(first.CA) == string(second.CA); same != tc.wantSame {
				t.Errorf("same authority: %v, want %v", same, tc.wantSame)
			}
			if !serves(second.Serving.Leaf, second.CA, want) {
				t.Error("the serving certificate does not serve all hosts")
			}
		})
	}
}

func TestPKILastsAndIsPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	pki, err := LoadPKI([]string{dir}, []string{"localhost"})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pki.CA)
	for _, at := range []time.Time{time.Unix(0, 0), time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if _, err := pki.Serving.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: at}); err != nil {
			t.Errorf("at %s: %v", at, err)
		}
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, caKeyFile): 0o600, filepath.Join(dir, servingKey): 0o600} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s: mode %o, want %o", path, got, want)
		}
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}
