package vault

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Only on a machine that can: nothing here makes a key of the host.
func TestSystemdCreds(t *testing.T) {
	if _, err := (SystemdCreds{}).Seal(context.Background(), make([]byte, keySize)); err != nil {
		t.Skipf("systemd-creds does not seal here: %v", err)
	}
	dir := t.TempDir()
	encrypted := encrypt(t, open(dir, SystemdCreds{}), "hunter2")
	if _, err := os.Stat(filepath.Join(dir, sealedName)); err != nil {
		t.Fatalf("the key is not sealed: %v", err)
	}
	if value, err := open(dir, SystemdCreds{}).Decrypt("place", encrypted); err != nil || string(value) != "hunter2" {
		t.Errorf("got %q, error %v", value, err)
	}
	if _, err := open(dir, machine{name: "another"}).Decrypt("place", encrypted); !errors.Is(err, ErrLocked) {
		t.Errorf("elsewhere: got error %v, want %v", err, ErrLocked)
	}
}
