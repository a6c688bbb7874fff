package stale

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func id(letter string) string { return strings.Repeat(letter, 64) }

func TestOrphans(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"10.1.2.2":           id("a") + "\r\neth0",
		"10.1.2.3":           id("b") + "\r\neth0",
		"10.1.2.4":           "",
		"10.1.2.5":           "\x00\x00\x00\x00",
		"10.1.2.6":           "a name that no runtime makes",
		"10.1.2.7":           id("a"), // as an older host-local wrote it
		"last_reserved_ip.0": "10.1.2.7",
		"lock":               "",
	} {
		write(t, filepath.Join(dir, name), content)
	}
	leases, err := readLeases(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range orphans(leases, map[string]bool{id("a"): true}) {
		got = append(got, filepath.Base(l.Path))
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"10.1.2.3", "10.1.2.4", "10.1.2.5"}, got); diff != "" {
		t.Errorf("leases of nobody (-want +got):\n%s", diff)
	}
}

func TestReadLeasesOfANetworkThatNobodyUsed(t *testing.T) {
	if leases, err := readLeases(filepath.Join(t.TempDir(), "none")); err != nil || len(leases) > 0 {
		t.Errorf("leases %v, error %v, want neither", leases, err)
	}
}

func TestRelease(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "10.1.2.2"), "")
	write(t, filepath.Join(dir, "10.1.2.3"), "")
	write(t, filepath.Join(dir, "10.1.2.4"), id("b"))
	leases, err := readLeases(dir)
	if err != nil {
		t.Fatal(err)
	}
	// One was given out anew and one was released before its turn came.
	write(t, filepath.Join(dir, "10.1.2.3"), id("c"))
	if err := os.Remove(filepath.Join(dir, "10.1.2.4")); err != nil {
		t.Fatal(err)
	}
	count, err := release(leases)
	if err != nil || count != 1 {
		t.Errorf("released %d, error %v, want 1", count, err)
	}
	left, err := readLeases(dir)
	if err != nil || len(left) != 1 || left[0].sandbox != id("c") {
		t.Errorf("left %+v, error %v, want the lease of another sandbox", left, err)
	}
}
