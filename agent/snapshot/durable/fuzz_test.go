package durable

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzDamagedFile changes a file anywhere, or cuts it. What is opened is the content that
// was written, or the one before the last change and in doubt, or nothing and in doubt.
func FuzzDamagedFile(f *testing.F) {
	page := uint32(pageSize)
	for _, offset := range []uint32{
		0, 8, 16, 20, 24, 32, 40, 48, 56, 64, 72, // a head
		page + 64, 2 * page, 2*page + 8, 3*page + 10, 3*page + 16, 4*page + 24, 5*page + 100, 9 * page,
	} {
		f.Add(offset, []byte{0xff}, uint32(0))
		f.Add(offset, []byte{0, 0, 0, 0, 0, 0, 0, 0}, uint32(0))
		f.Add(uint32(0), []byte{}, offset)
	}
	dir := f.TempDir()
	m, _, err := open(dir)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { m.Close() })
	before := map[Record]string{}
	for i := range 80 {
		change := put("objects", string(rune('a'+i)), string(make([]byte, 50*i)))
		before[change.Record] = string(change.Value)
		if err := m.Write(Lazy, change); err != nil {
			f.Fatal(err)
		}
	}
	if err := m.Write(Now); err != nil {
		f.Fatal(err)
	}
	if err := m.Write(Now, put("state", "last", "change")); err != nil {
		f.Fatal(err)
	}
	after := records(m)
	sound, err := os.ReadFile(m.path())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, offset uint32, data []byte, cut uint32) {
		content := append([]byte{}, sound...)
		if int(offset) < len(content) {
			copy(content[offset:], data)
		}
		if cut > 0 {
			content = content[:min(int(cut), len(content))]
		}
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, FileName), content, 0o600))
		m, doubt, err := open(dir)
		must(t, err)
		defer m.Close()
		must(t, m.Problem())
		got := records(m)
		if doubt == "" && !cmp.Equal(got, after) {
			t.Errorf("another content without a doubt: %s", cmp.Diff(after, got))
		}
		if doubt != "" && len(got) > 0 && !cmp.Equal(got, after) && !cmp.Equal(got, before) {
			t.Errorf("a content that never was, in doubt because %s", doubt)
		}
	})
}
