package images

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// store is containerd's content and one image with two layers, laid out in a directory.
type store struct {
	t     testing.TB
	dir   string
	index string
	err   error
	asks  int
}

func (s *store) directories(context.Context, string) ([]string, error) {
	s.asks++
	return []string{filepath.Join(s.dir, "2/fs"), filepath.Join(s.dir, "1/fs")}, s.err
}

type fakeLookup struct{ *store }

func (f fakeLookup) target(_ context.Context, name string) (string, error) {
	if name != "r.example/a:1" {
		return "", nil
	}
	return f.index, nil
}

func (s *store) path(parts ...string) string {
	return filepath.Join(append([]string{s.dir}, parts...)...)
}

func (s *store) write(path, content string) {
	s.t.Helper()
	must(s.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(s.t, os.WriteFile(path, []byte(content), 0o755))
}

func (s *store) blob(v any) string {
	s.t.Helper()
	data, err := json.Marshal(v)
	must(s.t, err)
	digest := digestOf(data)
	s.write(s.path("blobs", "sha256", strings.TrimPrefix(digest, "sha256:")), string(data))
	return digest
}

func newStore(t testing.TB) (*store, *Looker, Asked) {
	s := &store{t: t, dir: t.TempDir()}
	var config configuration
	config.Config.Entrypoint = []string{"/bin/app"}
	config.RootFS.DiffIDs = []string{"sha256:aa", "sha256:bb"}
	id := s.blob(config)
	one := s.blob(manifest{Config: descriptor{Digest: id}})
	// The manifest of another platform is not on the node.
	s.index = s.blob(manifest{Manifests: []descriptor{{Digest: "sha256:0123"}, {Digest: one}}})
	s.write(s.path("1/fs/usr/bin/app"), "#!/bin/sh")
	s.write(s.path("1/fs/usr/bin/tool"), "#!/bin/sh")
	must(t, os.MkdirAll(s.path("2/fs"), 0o755))
	must(t, os.Symlink("usr/bin", s.path("2/fs/bin")))
	l := &Looker{StateFile: s.path("images.json"), runtime: fakeLookup{s}}
	return s, l, Asked{Name: "r.example/a:1", ID: id, Blobs: s.path("blobs"), Overlay: true}
}

func (s *store) document(digest string) string {
	return s.path("blobs", "sha256", strings.TrimPrefix(digest, "sha256:"))
}

func TestLookFindsWhatAStartNeeds(t *testing.T) {
	const nothing = "\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	cases := map[string]struct {
		ask    func(*Asked)
		change func(*store, Asked)
		want   string
	}{
		"an image that is whole":                                    {change: func(*store, Asked) {}},
		"a program without content":                                 {change: func(s *store, _ Asked) { s.write(s.path("1/fs/usr/bin/app"), "") }, want: "/bin/app is empty"},
		"a program that is all zeros":                               {change: func(s *store, _ Asked) { s.write(s.path("1/fs/usr/bin/app"), nothing) }, want: "/bin/app is empty"},
		"a program that is gone":                                    {change: func(s *store, _ Asked) { must(s.t, os.Remove(s.path("1/fs/usr/bin/app"))) }, want: "/bin/app is not there"},
		"another file that is all zeros, which the keeper compares": {change: func(s *store, _ Asked) { s.write(s.path("1/fs/usr/bin/tool"), nothing) }},
		"the pod's own program is all zeros": {
			ask:    func(a *Asked) { a.Program = "tool" },
			change: func(s *store, _ Asked) { s.write(s.path("1/fs/usr/bin/tool"), nothing) }, want: "tool is empty",
		},
		"the pod's own program, and the image's is lost": {
			ask:    func(a *Asked) { a.Program = "/usr/bin/tool" },
			change: func(s *store, _ Asked) { s.write(s.path("1/fs/usr/bin/app"), nothing) },
		},
		"a program in a volume": {ask: func(a *Asked) { a.Program = "/data/app" }, change: func(*store, Asked) {}},
		"an image volume, of which nothing is started": {
			ask:    func(a *Asked) { a.Volume = true },
			change: func(s *store, _ Asked) { s.write(s.path("1/fs/usr/bin/app"), nothing) },
		},
		"a configuration that is gone":     {change: func(s *store, a Asked) { must(s.t, os.Remove(s.document(a.ID))) }, want: "missing or damaged"},
		"a configuration that is empty":    {change: func(s *store, a Asked) { s.write(s.document(a.ID), "") }, want: "missing or damaged"},
		"an index that is another":         {change: func(s *store, _ Asked) { s.write(s.document(s.index), "{}") }, want: "missing or damaged"},
		"a layer's directory that is gone": {change: func(s *store, _ Asked) { must(s.t, os.RemoveAll(s.path("2"))) }, want: "directory of a layer"},
		"layers that were never unpacked":  {change: func(s *store, a Asked) { s.err = errUnpacked; must(s.t, os.RemoveAll(s.path("2"))) }, want: "not unpacked"},
		"layers of another snapshotter": {
			ask:    func(a *Asked) { a.Overlay = false },
			change: func(s *store, _ Asked) { s.err = errUnpacked; must(s.t, os.RemoveAll(s.path("2"))) },
		},
		"what the keeper could not mend": {change: func(s *store, a Asked) { s.write(s.path("images.json"), `{"damaged":{"`+a.ID+`":true}}`) }, want: "could not be mended"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, l, asked := newStore(t)
			if tc.ask != nil {
				tc.ask(&asked)
			}
			look := func() string { must(t, l.Begin()); return l.Look(t.Context(), asked) }
			if problem := look(); problem != "" {
				t.Fatalf("before: %s", problem)
			}
			tc.change(s, asked)
			for range 2 {
				if problem := look(); tc.want == "" && problem != "" || !strings.Contains(problem, tc.want) {
					t.Errorf("got %q, want %q", problem, tc.want)
				}
			}
			_, fresh, _ := newStore(t)
			fresh.runtime, fresh.StateFile = l.runtime, l.StateFile
			must(t, fresh.Begin())
			if problem := fresh.Look(t.Context(), asked); tc.want == "" && problem != "" || tc.want != "" && problem == "" {
				t.Errorf("an agent that has just begun: %q, want %q", problem, tc.want)
			}
		})
	}
}

func TestDamageIsNotForgottenWhileItsFileCannotBeRead(t *testing.T) {
	s, l, asked := newStore(t)
	s.write(s.path("images.json"), `{"damaged":{"`+asked.ID+`":true}}`)
	must(t, l.Begin())
	s.write(s.path("images.json"), "{")
	for range 2 {
		if err := l.Begin(); err == nil || !strings.Contains(err.Error(), "images.json") {
			t.Errorf("error %v", err)
		}
		if problem := l.Look(t.Context(), asked); problem == "" {
			t.Error("the image is taken for whole")
		}
	}
	s.write(s.path("images.json"), "{}")
	must(t, l.Begin())
	if problem := l.Look(t.Context(), asked); problem != "" {
		t.Error(problem)
	}
}

func TestWhatIsWholeIsLearnedOnce(t *testing.T) {
	s, l, asked := newStore(t)
	for range 3 {
		must(t, l.Begin())
		l.Look(t.Context(), asked)
	}
	if s.asks != 1 {
		t.Errorf("the runtime was asked %d times", s.asks)
	}
	must(t, l.Begin())
	l.spent = learnTime + time.Second
	if problem := l.Look(t.Context(), Asked{Name: asked.Name, ID: "sha256:other", Blobs: asked.Blobs}); problem != "" || s.asks != 1 {
		t.Errorf("%d questions, %q: a pass has only so much time", s.asks, problem)
	}
}

func TestALostProgramIsSuspectedOnceAndWellWhenMended(t *testing.T) {
	s, l, asked := newStore(t)
	var suspects []string
	l.Suspect = func(id string) { suspects = append(suspects, id) }
	look := func() string { must(t, l.Begin()); return l.Look(t.Context(), asked) }
	look()
	s.write(s.path("1/fs/usr/bin/app"), "")
	look()
	look()
	if len(suspects) != 1 || suspects[0] != asked.ID {
		t.Errorf("suspects %v", suspects)
	}
	s.write(s.path("1/fs/usr/bin/app"), "#!/bin/sh")
	if problem := look(); problem != "" {
		t.Errorf("mended, and %s", problem)
	}
}

func TestAnImageThatWasPulledAnewLiesElsewhere(t *testing.T) {
	s, l, asked := newStore(t)
	must(t, l.Begin())
	l.Look(t.Context(), asked)
	must(t, os.Rename(s.path("1"), s.path("new")))
	must(t, os.Rename(s.path("2"), s.path("1")))
	must(t, os.Rename(s.path("new"), s.path("2")))
	must(t, l.Begin())
	if problem := l.Look(t.Context(), asked); problem != "" {
		t.Error(problem)
	}
}

// BenchmarkLook is a pass over 110 images that were learned and have not changed.
func BenchmarkLook(b *testing.B) {
	s, l, asked := newStore(b)
	begin := func() {
		if err := l.Begin(); err != nil {
			b.Fatal(err)
		}
	}
	begin()
	l.Look(b.Context(), asked)
	known := l.known[asked.key()]
	for b.Loop() {
		begin()
		for i := range 110 {
			one := asked
			one.ID = fmt.Sprint(asked.ID, i)
			if l.known[one.key()] == nil {
				other := *known
				l.known[one.key()] = &other
			}
			if problem := l.Look(b.Context(), one); problem != "" {
				b.Fatal(problem)
			}
		}
	}
	if s.asks != 1 {
		b.Errorf("the runtime was asked %d times", s.asks)
	}
}
