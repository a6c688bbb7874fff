package durable

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// grown is a map whose file has seen much: branches, values over several pages, free pages,
// buckets that are inlined.
func grown(t *testing.T) *Map {
	t.Helper()
	m := mustOpen(t, t.TempDir())
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 20 {
		changes := []Change{put("state", "round", fmt.Sprint(round))}
		for i := range 40 {
			key := fmt.Sprintf("default/%03d", random.IntN(120))
			if i%5 == 0 {
				changes = append(changes, remove("objects", key))
				continue
			}
			changes = append(changes, put("objects", key, strings.Repeat("x", random.IntN(5000))))
		}
		must(t, m.Write(Now, changes...))
	}
	return m
}

func byBbolt(t *testing.T, path string) map[Record]string {
	t.Helper()
	db, err := openDB(path, true)
	must(t, err)
	defer db.Close()
	found, _, err := load(db)
	must(t, err)
	return records(&Map{records: found})
}

func TestASoundFileIsReadAsBboltReadsIt(t *testing.T) {
	cases := map[string]func(t *testing.T) *Map{
		"that has grown": grown,
		"with one record": func(t *testing.T) *Map {
			m := mustOpen(t, t.TempDir())
			must(t, m.Write(Now, put("state", "mark", "a")))
			must(t, m.Write(Now, put("state", "mark", "b")))
			return m
		},
		"whose records are all gone": func(t *testing.T) *Map {
			m := mustOpen(t, t.TempDir())
			must(t, m.Write(Now, put("state", "mark", "a")))
			must(t, m.Write(Now, remove("state", "mark")))
			return m
		},
	}
	for name, made := range cases {
		t.Run(name, func(t *testing.T) {
			m := made(t)
			must(t, m.Close())
			want := byBbolt(t, m.path())
			got, txid, err := readSound(m.path())
			must(t, err)
			if diff := cmp.Diff(want, records(&Map{records: got})); diff != "" {
				t.Error(diff)
			}
			if again := (&Map{dir: m.dir}); !again.loadSound() || txid == 0 {
				t.Error("it was not opened")
			} else {
				must(t, again.file.close())
			}
		})
	}
}

// A file that differs in one place from a sound one is either refused, or that place means
// nothing: bbolt, in a process of its own, finds it sound, with the same records.
func TestNothingIsTakenThatTheCheckRefuses(t *testing.T) {
	m := grown(t)
	must(t, m.Close())
	want := byBbolt(t, m.path())
	sound, err := os.ReadFile(m.path())
	must(t, err)
	pages := len(sound) / int(pageSize)
	random := rand.New(rand.NewPCG(3, 4))
	taken := 0
	for i := range 600 {
		page := random.IntN(pages)
		// Most of what holds the file together is at the beginning of a page.
		offset := page*int(pageSize) + random.IntN([]int{16, 80, int(pageSize)}[i%3])
		overwrite(int64(offset), []byte{sound[offset] ^ 1<<random.IntN(8)})(t, m.path())
		got, _, err := readSound(m.path())
		if err != nil {
			overwrite(int64(offset), sound[offset:offset+1])(t, m.path())
			continue
		}
		taken++
		if len(got) != len(want) {
			t.Fatalf("byte %d of page %d: %d records, not %d", offset%int(pageSize), page, len(got), len(want))
		}
		for record, value := range got {
			if string(value) != want[record] {
				t.Fatalf("byte %d of page %d: another value of %v", offset%int(pageSize), page, record)
			}
		}
		if taken%50 == 0 { // a process is dear
			if err := checker().check(m.path()); err != nil {
				t.Fatalf("byte %d of page %d: %v", offset%int(pageSize), page, err)
			}
		}
		overwrite(int64(offset), sound[offset:offset+1])(t, m.path())
	}
	if taken == 0 {
		t.Error("nothing was taken, so nothing is shown")
	}
}

func TestWhatIsNotSoundIsLeftToTheCheck(t *testing.T) {
	cases := map[string]damage{
		"an empty file":                    func(t *testing.T, path string) { must(t, os.WriteFile(path, nil, 0o600)) },
		"a file that was cut":              func(t *testing.T, path string) { must(t, os.Truncate(path, 3*pageSize)) },
		"a first head that cannot be read": overwrite(headOffset, []byte{0}),
		"a second head of another kind":    overwrite(pageSize+8, []byte{2}),
	}
	for name, damage := range cases {
		t.Run(name, func(t *testing.T) {
			m := grown(t)
			must(t, m.Close())
			damage(t, m.path())
			if again := (&Map{dir: m.dir}); again.loadSound() {
				t.Error("it was opened")
			}
		})
	}
	t.Run("a path in a circle", func(t *testing.T) {
		m := grown(t)
		must(t, m.Close())
		circle(t, m.path())
		if again := (&Map{dir: m.dir}); again.loadSound() {
			t.Error("it was opened")
		}
	})
}
