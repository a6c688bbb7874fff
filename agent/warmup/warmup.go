// Package warmup keeps on the node what a restart needs beside the API: node files that a
// boot loses, and the images of the node's pods.
package warmup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"rekindle.edge/agent/snapshot"
	"rekindle.edge/agent/warmup/nodefiles"
	"rekindle.edge/api/v1alpha1"
)

const (
	// filesDir is below the state directory.
	filesDir = "nodefiles"
	// restoredFile is there once node files were put back in this boot: one that somebody
	// removes later must not come back with a restart of the agent.
	restoredFile = "nodefiles-restored"
)

// Options are where the node has what.
type Options struct {
	// StateDir survives a restart, RunDir does not.
	StateDir, RunDir string
	// Root of the node's files.
	Root string
}

// Warmup is the running part.
type Warmup struct {
	options Options
	files   *nodefiles.Keeper

	mu sync.Mutex
	// spec is nil while no policy applies.
	spec    *v1alpha1.NodeRecoverySpec
	changed func()
}

// New returns a warm-up that does nothing yet.
func New(options Options) *Warmup {
	w := &Warmup{options: options, changed: func() {}}
	w.files = nodefiles.New(filepath.Join(options.StateDir, filesDir), options.Root, clock.RealClock{}, w.tell)
	return w
}

// Begin puts back what the boot has lost. It is called before containerd and kubelet start,
// with the spec that applied before the restart. Changed is called, without waiting, when
// Report gives something else.
func (w *Warmup) Begin(ctx context.Context, spec *snapshot.Spec, changed func()) {
	log := logr.FromContextOrDiscard(ctx)
	w.mu.Lock()
	w.changed = changed
	w.mu.Unlock()
	w.Adopt(spec)
	files := w.nodeFiles()
	if len(files) == 0 || spec.Spec.Mode == v1alpha1.ModeObserve {
		return
	}
	mark := filepath.Join(w.options.RunDir, restoredFile)
	if _, err := os.Stat(mark); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	if put := w.files.Restore(ctx, files); len(put) > 0 {
		log.Info("Node files are put back", "files", put)
	}
	err := os.MkdirAll(w.options.RunDir, 0o700)
	if err == nil {
		err = os.WriteFile(mark, nil, 0o600)
	}
	if err != nil {
		log.Error(err, "Cannot note that node files were put back, a restart of the agent may put them back again")
	}
}

// Adopt takes a spec over; nil: no policy applies.
func (w *Warmup) Adopt(spec *snapshot.Spec) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spec = nil
	if spec != nil {
		w.spec = &spec.Spec
	}
}

// Run keeps everything warm until ctx ends.
func (w *Warmup) Run(ctx context.Context) {
	w.files.Run(ctx, w.nodeFiles)
}

func (w *Warmup) nodeFiles() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.spec == nil {
		return nil
	}
	return w.spec.Snapshot.NodeFiles
}

// tell that Report gives something else.
func (w *Warmup) tell() {
	w.mu.Lock()
	changed := w.changed
	w.mu.Unlock()
	changed()
}

// Findings say which node files are not kept.
func (w *Warmup) Findings() []v1alpha1.Finding {
	problems := w.files.Problems()
	var findings []v1alpha1.Finding
	for _, file := range w.nodeFiles() {
		if why, ok := problems[file]; ok {
			findings = append(findings, v1alpha1.Finding{
				Reason: v1alpha1.ReasonNodeFileNotKept, Severity: v1alpha1.SeveritySlows, Object: "file/" + file,
				Message: "The file of the policy's snapshot.nodeFiles is not kept, or was not put back: " + why + ". Remove it from the policy, or what is in its way from the node.",
			})
		}
	}
	return slices.Clip(findings)
}
