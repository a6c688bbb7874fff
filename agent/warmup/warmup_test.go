package warmup

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"rekindle.edge/agent/cri"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

// noRuntime is a runtime that has not come up.
func noRuntime(t *testing.T) *cri.Client {
	client := cri.New("unix://" + filepath.Join(t.TempDir(), "none.sock"))
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestNodeFilesArePutBackOnceABoot(t *testing.T) {
	const file = "/run/flannel/subnet.env"
	cases := map[string]struct {
		mode    v1alpha1.Mode
		restart bool // of the agent alone, after the file was removed
		want    bool
	}{
		"in a new boot the file is put back":                       {mode: v1alpha1.ModeEnforce, want: true},
		"in mode Observe it is not":                                {mode: v1alpha1.ModeObserve},
		"a file that was removed does not come back with an agent": {mode: v1alpha1.ModeEnforce, restart: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root, state, run := t.TempDir(), t.TempDir(), t.TempDir()
			spec := &snapshot.Spec{Spec: v1alpha1.NodeRecoverySpec{Mode: tc.mode, Snapshot: v1alpha1.Snapshot{NodeFiles: []string{file}}}}
			path := filepath.Join(root, file)
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			must(os.MkdirAll(filepath.Dir(path), 0o755))
			must(os.WriteFile(path, []byte("FLANNEL_MTU=1450\n"), 0o644))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			first := New(Options{StateDir: state, RunDir: run, Root: root, Containerd: noRuntime(t)})
			first.Begin(ctx, boot(t, nil, func() {}))
			first.Adopt(spec)
			done := make(chan struct{})
			go func() { first.Run(ctx); close(done) }()
			for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
				if copies, _ := filepath.Glob(filepath.Join(state, filesDir, "*")); len(copies) == 1 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("the file was not kept within 20 s")
				}
			}
			cancel()
			<-done

			begin := func() {
				must(os.RemoveAll(filepath.Join(root, "run")))
				must(os.Mkdir(filepath.Join(root, "run"), 0o755))
				New(Options{StateDir: state, RunDir: run, Root: root, Containerd: noRuntime(t)}).Begin(t.Context(), boot(t, spec, func() {}))
			}
			begin()
			if tc.restart {
				begin()
			}
			_, err := os.Stat(path)
			if got := err == nil; got != tc.want {
				t.Errorf("the file is there: %v, want %v (%v)", got, tc.want, err)
			}
		})
	}
}

func TestAFileThatIsNotKeptIsAFinding(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "run/flannel/subnet.env"), 0o755); err != nil {
		t.Fatal(err)
	}
	told := make(chan struct{}, 10)
	w := New(Options{StateDir: t.TempDir(), RunDir: t.TempDir(), Root: root, Containerd: noRuntime(t)})
	w.Begin(t.Context(), boot(t, &snapshot.Spec{Spec: v1alpha1.NodeRecoverySpec{
		Mode: v1alpha1.ModeObserve, Snapshot: v1alpha1.Snapshot{NodeFiles: []string{"/run/flannel/subnet.env"}},
	}}, func() { told <- struct{}{} }))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { w.Run(ctx); close(done) }()
	var findings []v1alpha1.Finding
	for len(findings) == 0 {
		<-told
		findings = w.Findings()
	}
	cancel()
	<-done
	if len(findings) != 1 || findings[0].Reason != v1alpha1.ReasonNodeFileNotKept || findings[0].Object != "file//run/flannel/subnet.env" {
		t.Errorf("findings %+v", findings)
	}
}

// boot is one with an empty snapshot.
func boot(t *testing.T, spec *snapshot.Spec, changed func()) Boot {
	t.Helper()
	store, err := snapshot.Open(t.TempDir(), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return Boot{ID: "one", Spec: spec, Objects: store.Objects(), Changed: changed}
}

func TestWhatARecoveryHasReadIsReadAheadIfWanted(t *testing.T) {
	for mode, want := range map[v1alpha1.Toggle]bool{v1alpha1.ToggleEnabled: true, v1alpha1.ToggleDisabled: false, "": false} {
		state, run, layer := t.TempDir(), t.TempDir(), t.TempDir()
		if err := os.WriteFile(filepath.Join(layer, "app"), []byte("a program"), 0o755); err != nil {
			t.Fatal(err)
		}
		spec := &snapshot.Spec{Spec: v1alpha1.NodeRecoverySpec{CacheWarmup: v1alpha1.CacheWarmup{PageCache: v1alpha1.PageCache{Mode: mode}}}}
		w := New(Options{StateDir: state, RunDir: run, Root: t.TempDir(), Containerd: noRuntime(t)})
		w.Begin(t.Context(), boot(t, spec, func() {}))
		w.learn(t.Context(), []string{layer})
		_, err := os.Stat(filepath.Join(state, readFile))
		if got := err == nil; got != want {
			t.Errorf("mode %q: learnt %v", mode, got)
		}
		w.readAhead(t.Context())
		_, err = os.Stat(filepath.Join(run, readMark))
		if got := err == nil; got != want {
			t.Errorf("mode %q: read ahead %v", mode, got)
		}
	}
}
