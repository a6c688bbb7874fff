package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLoadJSON(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "run", "state.json")
	var got []string
	if found, err := LoadJSON(path, &got); found || err != nil {
		t.Fatalf("a file that is not there: found %v, error %v", found, err)
	}
	if err := SaveJSON(path, []string{"a", "b"}); err != nil {
		t.Fatal(err)
	}
	if found, err := LoadJSON(path, &got); !found || err != nil || strings.Join(got, "") != "ab" {
		t.Errorf("what was saved: found %v, error %v, %v", found, err, got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, error %v; want it for root alone", info.Mode(), err)
	}
	if err := os.WriteFile(path, []byte(`["a"`), 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := LoadJSON(path, &got); found || err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a file cut short: found %v, error %v; want one that names it", found, err)
	}
}
