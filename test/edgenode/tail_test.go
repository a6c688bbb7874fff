package edgenode

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTailGivesEachLineOnceAndOnlyWhole(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	log := tail{path: file}
	var got []string
	for _, part := range []string{"one\ntw", "o\n", "", "three\nfour\n"} {
		f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(part); err != nil {
			t.Fatal(err)
		}
		f.Close()
		if err := log.read(func(r io.Reader) error {
			news, err := io.ReadAll(r)
			got = append(got, string(news))
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"one\n", "two\n", "", "three\nfour\n"}, got); diff != "" {
		t.Error(diff)
	}
}
