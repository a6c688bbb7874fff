package vault

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
)

// machine seals by adding its name.
type machine struct {
	name string
	err  error
}

func (m machine) Seal(_ context.Context, key []byte) ([]byte, error) {
	return append([]byte(m.name), key...), m.err
}

func (m machine) Unseal(_ context.Context, sealed []byte) ([]byte, error) {
	key, ok := bytes.CutPrefix(sealed, []byte(m.name))
	if !ok {
		return nil, errors.New("sealed by another machine")
	}
	return key, m.err
}

func open(dir string, sealer Sealer) *Vault {
	return Open(context.Background(), dir, sealer, logr.Discard())
}

func encrypt(t *testing.T, v *Vault, value string) []byte {
	t.Helper()
	encrypted := v.Encrypt("place", []byte(value))
	if err := v.Save(); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(encrypted, []byte(value)) {
		t.Error("the value is in what was encrypted")
	}
	return encrypted
}

func TestWhoCanRead(t *testing.T) {
	here, there := machine{name: "here"}, machine{name: "there"}
	cases := map[string]struct {
		written, read Sealer
		spoil         func(t *testing.T, dir string)
		want          error
		wantFile      string
	}{
		"the same machine":                                 {written: here, read: here, wantFile: sealedName},
		"the disk in another machine":                      {written: here, read: there, want: ErrLocked, wantFile: sealedName},
		"a machine that cannot seal":                       {wantFile: plainName},
		"a machine whose sealer fails":                     {written: machine{err: errors.New("no TPM")}, wantFile: plainName},
		"a machine that sealed before and cannot any more": {written: here, want: ErrLocked, wantFile: plainName},
		"a key of half its length": {
			spoil: func(t *testing.T, dir string) {
				if err := os.Truncate(filepath.Join(dir, plainName), keySize/2); err != nil {
					t.Fatal(err)
				}
			},
			want: ErrLocked, wantFile: plainName,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			encrypted := encrypt(t, open(dir, tc.written), "hunter2")
			if tc.spoil != nil {
				tc.spoil(t, dir)
			}
			v := open(dir, tc.read)
			value, err := v.Decrypt("place", encrypted)
			if !errors.Is(err, tc.want) || err == nil && string(value) != "hunter2" {
				t.Errorf("got %q, error %v, want error %v", value, err, tc.want)
			}
			if got := v.Problem() != nil; got != (tc.want != nil) {
				t.Errorf("problem %v", v.Problem())
			}
			// In any case the vault goes on.
			again := encrypt(t, v, "new")
			if value, err := open(dir, tc.read).Decrypt("place", again); err != nil || string(value) != "new" {
				t.Errorf("after the next start: got %q, error %v", value, err)
			}
			info, err := os.Stat(filepath.Join(dir, tc.wantFile))
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("key file %v, error %v, want %s with mode 0600", info, err, tc.wantFile)
			}
		})
	}
}

func TestAKeyThatIsLostForOneStartIsUsedAtTheNext(t *testing.T) {
	dir := t.TempDir()
	here := machine{name: "here"}
	encrypted := encrypt(t, open(dir, here), "old")
	between := open(dir, machine{name: "here", err: errors.New("TPM is busy")})
	if _, err := between.Decrypt("place", encrypted); !errors.Is(err, ErrLocked) {
		t.Errorf("got error %v, want %v", err, ErrLocked)
	}
	newer := encrypt(t, between, "new")
	v := open(dir, here)
	for want, encrypted := range map[string][]byte{"old": encrypted, "new": newer} {
		if value, err := v.Decrypt("place", encrypted); err != nil || string(value) != want {
			t.Errorf("got %q, error %v, want %q", value, err, want)
		}
	}
}

func TestAKeyIsSavedWhenTheDiskTakesIt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	v := open(dir, nil)
	encrypted := v.Encrypt("place", []byte("hunter2"))
	if err := v.Save(); err == nil {
		t.Error("saved in a directory that does not exist")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := v.Save(); err != nil {
		t.Error(err)
	}
	if value, err := open(dir, nil).Decrypt("place", encrypted); err != nil || string(value) != "hunter2" {
		t.Errorf("got %q, error %v", value, err)
	}
}

func TestTamperedValuesAreRefused(t *testing.T) {
	v := open(t.TempDir(), nil)
	encrypted := encrypt(t, v, "hunter2")
	for i := range encrypted {
		changed := bytes.Clone(encrypted)
		changed[i] ^= 1
		if _, err := v.Decrypt("place", changed); !errors.Is(err, ErrLocked) {
			t.Errorf("byte %d changed: got error %v, want %v", i, err, ErrLocked)
		}
		if _, err := v.Decrypt("place", encrypted[:i]); !errors.Is(err, ErrLocked) {
			t.Errorf("cut to %d bytes: got error %v, want %v", i, err, ErrLocked)
		}
	}
	if _, err := v.Decrypt("elsewhere", encrypted); !errors.Is(err, ErrLocked) {
		t.Errorf("another place: got error %v, want %v", err, ErrLocked)
	}
}
